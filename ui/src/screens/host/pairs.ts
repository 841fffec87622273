// readPairs reads lines of key=value.
export function readPairs(text: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const l of text.split('\n')) {
    const [k, ...v] = l.split('=')
    if (k?.trim()) out[k.trim()] = v.join('=').trim()
  }
  return out
}
