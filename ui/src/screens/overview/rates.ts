// bytesText is a rate of bytes, as few digits as say it.
export function bytesText(perSecond: number): string {
  for (const [unit, size] of [
    ['GB/s', 1e9],
    ['MB/s', 1e6],
    ['kB/s', 1e3],
  ] as const)
    if (perSecond >= size) return `${trim(perSecond / size)} ${unit}`
  return `${trim(perSecond)} B/s`
}

export const perSecond = (v: number) => `${trim(v)}/s`
export const perMinute = (v: number) => `${trim(v)}/min`

function trim(v: number): string {
  if (v >= 100) return Math.round(v).toString()
  return Number(v.toFixed(v >= 10 ? 1 : 2)).toString()
}
