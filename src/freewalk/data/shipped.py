"""Data sets included in scikit-learn; nothing is downloaded."""

from freewalk.data.dataset import Dataset
from freewalk.errors import MissingExtra

__all__ = ["breast_cancer", "diabetes", "digits", "wine"]

_UCI = "CC BY 4.0, as the UCI Machine Learning Repository states; the copy in scikit-learn names no licence"
# The origin of each data set, and its terms of use.
_ORIGINS = {
    "digits": (
        "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, the test set, "
        "UCI Machine Learning Repository, https://doi.org/10.24432/C50P49; from scikit-learn",
        _UCI,
    ),
    "breast_cancer": (
        "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), Breast Cancer Wisconsin (Diagnostic), "
        "UCI Machine Learning Repository, https://doi.org/10.24432/C5DW2B; from scikit-learn",
        _UCI,
    ),
    "wine": (
        "S. Aeberhard and M. Forina (1992), Wine, UCI Machine Learning Repository, "
        "https://doi.org/10.24432/C5PC7J; from scikit-learn",
        _UCI,
    ),
    "diabetes": (
        "B. Efron, T. Hastie, I. Johnstone and R. Tibshirani (2004), Least Angle Regression, "
        "https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html; from scikit-learn",
        "none stated by the authors, who publish the data",
    ),
}


def digits() -> Dataset:
    """Handwritten digits: 1,797 images of 8 × 8 pixels, 10 classes.

    Pixel values are divided by 16, so they are between 0 and 1. Requires scikit-learn: pip install "freewalk[data]".

    Source: the test set of *Optical Recognition of Handwritten Digits* (E. Alpaydin and C. Kaynak, 1998), UCI Machine
    Learning Repository, under CC BY 4.0.

    Examples
    --------
    >>> digits()
    Dataset(digits: 1,797 samples, 64 features, 10 classes)
    """
    return _shipped("digits", tuple(map(str, range(10))), (1, 8, 8), scale=16.0)


def breast_cancer() -> Dataset:
    """Breast cancer, Wisconsin (diagnostic): 569 samples, 30 features of cell nuclei, malignant or benign.

    The features differ by orders of magnitude; use `standardized`. Requires scikit-learn: pip install "freewalk[data]".

    Source: W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), *Breast Cancer Wisconsin (Diagnostic)*, UCI
    Machine Learning Repository, under CC BY 4.0.

    Examples
    --------
    >>> breast_cancer().classes
    ('malignant', 'benign')
    """
    return _shipped("breast_cancer", ("malignant", "benign"))


def wine() -> Dataset:
    """Wine: 178 samples, 13 chemical measurements, 3 cultivars.

    The features differ by orders of magnitude; use `standardized`. Requires scikit-learn: pip install "freewalk[data]".

    Source: S. Aeberhard and M. Forina (1992), *Wine*, UCI Machine Learning Repository, under CC BY 4.0.

    Examples
    --------
    >>> wine()
    Dataset(wine: 178 samples, 13 features, 3 classes)
    """
    return _shipped("wine", ("cultivar 1", "cultivar 2", "cultivar 3"))


def diabetes() -> Dataset:
    """Diabetes: 442 patients, 10 measurements each; the target is the disease progression after one year (regression).

    The features are centred and have norm 1, as in scikit-learn; `standardized(targets=True)` scales features and
    targets. Requires scikit-learn: pip install "freewalk[data]".

    Source: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani (2004), *Least Angle Regression*, Annals of Statistics
    32. The authors publish the data and state no licence.

    Examples
    --------
    >>> diabetes()
    Dataset(diabetes: 442 samples, 10 features, regression)
    """
    return _shipped("diabetes")


def _shipped(
    name: str, classes: tuple[str, ...] | None = None, shape: tuple[int, ...] | None = None, scale: float = 1.0
) -> Dataset:
    try:
        from sklearn import datasets
    except ImportError:
        raise MissingExtra("sklearn", "data") from None
    found = getattr(datasets, f"load_{name}")()
    return Dataset(found.data / scale, found.target, name, classes, shape, *_ORIGINS[name])
