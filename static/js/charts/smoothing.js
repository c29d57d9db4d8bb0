/** An exponential mean that starts unbiased; gaps stay gaps. @param {(number|null)[]} values */
export function smooth(values, weight = 0.9) {
  const shown = new Array(values.length);
  let mean = 0;
  let mass = 0;
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (value === null || value === undefined) {
      shown[at] = null;
      continue;
    }
    mean = weight * mean + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    shown[at] = mean / mass;
  }
  return shown;
}
