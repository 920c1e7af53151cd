"""Data sets included in scikit-learn; nothing is downloaded."""

from typing import Any

from freewalk.data.dataset import Dataset
from freewalk.errors import MissingExtra

__all__ = ["breast_cancer", "diabetes", "digits", "wine"]


def digits() -> Dataset:
    """Handwritten digits: 1,797 images of 8 × 8 pixels, 10 classes.

    Pixel values are divided by 16, so they are between 0 and 1. Requires scikit-learn: pip install ".[data]".

    Source: the test set of *Optical Recognition of Handwritten Digits* (E. Alpaydin and C. Kaynak, 1998), UCI Machine
    Learning Repository, under CC BY 4.0.

    Examples
    --------
    >>> digits()
    Dataset(digits: 1,797 samples, 64 features, 10 classes)
    """
    work = "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, the test set"
    return _shipped("digits", *_uci(work, "C50P49"), 16.0, classes=tuple(map(str, range(10))), shape=(1, 8, 8))


def breast_cancer() -> Dataset:
    """Breast cancer, Wisconsin (diagnostic): 569 samples, 30 features of cell nuclei, malignant or benign.

    The features differ by orders of magnitude; use `standardized`. Requires scikit-learn: pip install ".[data]".

    Source: W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), *Breast Cancer Wisconsin (Diagnostic)*, UCI
    Machine Learning Repository, under CC BY 4.0.

    Examples
    --------
    >>> breast_cancer().classes
    ('malignant', 'benign')
    """
    work = "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), Breast Cancer Wisconsin (Diagnostic)"
    return _shipped("breast_cancer", *_uci(work, "C5DW2B"), classes=("malignant", "benign"))


def wine() -> Dataset:
    """Wine: 178 samples, 13 chemical measurements, 3 cultivars.

    The features differ by orders of magnitude; use `standardized`. Requires scikit-learn: pip install ".[data]".

    Source: S. Aeberhard and M. Forina (1992), *Wine*, UCI Machine Learning Repository, under CC BY 4.0.

    Examples
    --------
    >>> wine()
    Dataset(wine: 178 samples, 13 features, 3 classes)
    """
    origin = _uci("S. Aeberhard and M. Forina (1992), Wine", "C5PC7J")
    return _shipped("wine", *origin, classes=("cultivar 1", "cultivar 2", "cultivar 3"))


def diabetes() -> Dataset:
    """Diabetes: 442 patients, 10 measurements each; the target is the disease progression after one year (regression).

    The features are centred and have norm 1, as in scikit-learn; `standardized(targets=True)` scales features and
    targets. Requires scikit-learn: pip install ".[data]".

    Source: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani (2004), *Least Angle Regression*, Annals of Statistics
    32. The authors publish the data and state no licence.

    Examples
    --------
    >>> diabetes()
    Dataset(diabetes: 442 samples, 10 features, regression)
    """
    work = "B. Efron, T. Hastie, I. Johnstone and R. Tibshirani (2004), Least Angle Regression"
    source = f"{work}, https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html"
    return _shipped("diabetes", source, "none stated by the authors, who publish the data")


def _uci(work: str, number: str) -> tuple[str, str]:
    """The source and the terms of use of a work in this repository."""
    terms = "CC BY 4.0, as the UCI Machine Learning Repository states; the copy in scikit-learn names no licence"
    return f"{work}, UCI Machine Learning Repository, https://doi.org/10.24432/{number}", terms


def _shipped(name: str, source: str, licence: str, scale: float = 1.0, **more: Any) -> Dataset:
    try:
        from sklearn import datasets
    except ImportError:
        raise MissingExtra("sklearn", "data") from None
    found = getattr(datasets, f"load_{name}")()
    source = f"{source}; from scikit-learn"
    return Dataset(found.data / scale, found.target, name, source=source, licence=licence, **more)
