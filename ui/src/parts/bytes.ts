const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

// bytesOf writes a size as people read it.
export function bytesOf(n: number): string {
  let unit = 0
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`
}

// restOf says how long the rest takes at that speed; '' when nobody can know.
export function restOf(bytes: number, total: number, perSecond: number): string {
  if (perSecond <= 0 || total <= bytes) return ''
  const s = Math.ceil((total - bytes) / perSecond)
  if (s < 60) return `${s} s left`
  if (s < 3600) return `${Math.ceil(s / 60)} min left`
  return `${Math.floor(s / 3600)} h ${Math.ceil((s % 3600) / 60)} min left`
}
