// Axes: the position of a value, the value at a position, and the values that get a tick.

const BELOW_FIRST = 0.3; // decades of a log axis between 0 and its first value

// `first`: the value up to which a log axis that begins at 0 is linear.
function makeScale({ low, high, from, to, log = false, first = null }) {
  const forward = !log ? (v) => v
    : first === null ? (v) => Math.log10(v)
    : (v) => (v <= first ? (BELOW_FIRST * v) / first : BELOW_FIRST + Math.log10(v / first));
  const backward = !log ? (v) => v
    : first === null ? (v) => 10 ** v
    : (v) => (v <= BELOW_FIRST ? (v / BELOW_FIRST) * first : first * 10 ** (v - BELOW_FIRST));
  const start = forward(low);
  const span = forward(high) - start || 1;
  return {
    low, high,
    at: (value) => from + ((forward(value) - start) / span) * (to - from),
    value: (place) => backward(start + ((place - from) / (to - from)) * span),
    ticks: (most) => (!log ? even(low, high, most) : first === null ? powers(low, high, most) : fromZero(first, high, most)),
    minor: () => (log ? between(first === null ? low : first, high) : []),
  };
}

// Multiples of 1, 2 or 5 times a power of ten: as many as fit, and at least three.
function even(low, high, most) {
  const span = high - low;
  if (!(span > 1e-9 * Math.abs(high))) return [low];
  let found = [];
  for (let power = Math.floor(Math.log10(span)) + 1; found.length < most && power > -320; power--) {
    for (const factor of [5, 2, 1]) {
      const finer = multiples(factor * tenTo(power), low, high);
      if (finer.length > most && found.length > 2) return found;
      found = finer;
      if (found.length > most) return found; // too many is better than two
    }
  }
  return found;
}

function multiples(step, low, high) {
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + 1e-9 * step; count++) {
    found.push(Number((count * step).toPrecision(12)));
  }
  return found;
}

// Powers of ten, with other multiples between if they are few; evenly spaced numbers if the range is narrow.
function powers(low, high, most) {
  const lowest = Math.ceil(Math.log10(low) - 1e-9);
  const highest = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((highest - lowest + 1) / most));
  const tens = [];
  for (let power = lowest; power <= highest; power += stride) tens.push(tenTo(power));
  if (tens.length > 2) return tens;
  for (const factors of [[1, 2, 5], [1, 3]]) {
    const more = [];
    for (let power = lowest - 1; power <= highest; power++) {
      for (const factor of factors) {
        const value = Number((factor * tenTo(power)).toPrecision(3));
        if (value >= low * 0.999 && value <= high * 1.001) more.push(value);
      }
    }
    if (more.length > 2 && more.length <= Math.max(most, 4) + 1) return more;
  }
  return tens.length > 1 && high / low > 30 ? tens : even(low, high, Math.min(most, 4));
}

function fromZero(first, high, most) {
  const found = powers(first, high, Math.max(most - 1, 2));
  return [0, ...found];
}

function between(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (let factor = 1; factor < 10; factor++) {
      const value = factor * tenTo(power);
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found.length <= 60 ? found : [];
}

function tenTo(power) {
  return Number(`1e${power}`); // 10 ** -3 is not exactly 0.001 in every browser
}
