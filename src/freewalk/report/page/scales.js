// Axes: where a value is, which value is at a place, and which values get a tick.

const BELOW_FIRST = 0.3; // decades that a log axis gives to what lies between 0 and its first value

// `first`: a log axis that begins at 0 is linear up to there.
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

// Multiples of 1, 2 or 5, at most so many.
function even(low, high, most) {
  const rough = (high - low) / Math.max(most - 1, 1);
  if (!(rough > 0)) return [low];
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= rough * 0.999);
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + 1e-9 * step; count++) {
    found.push(Number((count * step).toPrecision(12)));
  }
  return found;
}

// Powers of ten; with 2 and 5 between where those are too few, and even numbers where these are too.
function powers(low, high, most) {
  const lowest = Math.ceil(Math.log10(low) - 1e-9);
  const highest = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((highest - lowest + 1) / most));
  const tens = [];
  for (let power = lowest; power <= highest; power += stride) tens.push(tenTo(power));
  if (tens.length > 2) return tens;
  const more = [];
  for (let power = lowest - 1; power <= highest; power++) {
    for (const factor of [1, 2, 5]) {
      const value = Number((factor * tenTo(power)).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) more.push(value);
    }
  }
  if (more.length > 2) return more.length <= most ? more : tens.length > 1 ? tens : more.filter((_, place) => place % 2 === 0);
  return even(low, high, Math.min(most, 4));
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
  return Number(`1e${power}`); // 10 ** -3 is not 0.001 everywhere
}
