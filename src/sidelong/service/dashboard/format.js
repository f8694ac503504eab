// How numbers, probabilities and times are written.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (n) => whole.format(n);

const brief = new Intl.NumberFormat("en", { notation: "compact" });

/** A number beside an axis, where there is little room: 1K for 1,000. */
export const short = (n) => brief.format(n);

/** A cost or another number with some digits; a dash if it is not known. */
export function number(value, digits = 3) {
  return value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(?=.*[1-9])/, "−").replace("-", "");
}

const tiny = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const [small, large] = [2, 0].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

/** An amount in the unit of an experiment's scale; a dash if it is not known. */
export const amount = (value) => (value === null ? "–" : (Math.abs(value) < 0.1 ? tiny : Math.abs(value) < 1000 ? small : large).format(value).replace("-", "−"));

/** A probability in percent, with as many digits as say something. */
export function percent(p) {
  if (p === null || p === undefined) return "–";
  const value = 100 * p;
  if (value !== 0 && value < 0.0001) return "< 0.0001 %";
  if (value !== 0 && value < 0.01) return `${value.toPrecision(1)} %`;
  return `${value.toFixed(value >= 99.95 || value === 0 ? 0 : value >= 10 ? 1 : 2)} %`;
}

export const range = (low, high, digits = 3) =>
  low === null || high === null || low === undefined ? "" : `${number(low, digits)} to ${number(high, digits)}`;

/** "12 decisions", "1 decision". */
export const some = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** How long something takes, in the largest unit that fits. */
export function duration(seconds) {
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= size) return some(Math.round((10 * seconds) / size) / 10, unit);
  }
  return some(Math.round(seconds), "second");
}

export function ago(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  return seconds < 60 ? "just now" : `${duration(Math.round(seconds / 60) * 60)} ago`;
}

export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
