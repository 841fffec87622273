// yamlOf writes a thing as YAML for reading. Whatever could be read as something else is quoted.
export function yamlOf(v: unknown, indent = ''): string {
  if (Array.isArray(v)) {
    if (v.length === 0) return `${indent}[]\n`
    return v
      .map((x) => {
        const inner = yamlOf(x, `${indent}  `)
        return isNested(x) ? `${indent}- ${inner.slice(indent.length + 2)}` : `${indent}- ${scalar(x)}\n`
      })
      .join('')
  }
  if (isMap(v)) {
    const keys = Object.entries(v).filter(([, x]) => x !== undefined)
    if (keys.length === 0) return `${indent}{}\n`
    return keys
      .map(([k, x]) =>
        isNested(x) ? `${indent}${scalar(k)}:\n${yamlOf(x, `${indent}  `)}` : `${indent}${scalar(k)}: ${scalar(x)}\n`,
      )
      .join('')
  }
  return `${indent}${scalar(v)}\n`
}

const isMap = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v)
const isNested = (v: unknown) => (Array.isArray(v) && v.length > 0) || (isMap(v) && Object.keys(v).length > 0)

function scalar(v: unknown): string {
  if (Array.isArray(v)) return '[]'
  if (isMap(v)) return '{}'
  if (typeof v !== 'string') return JSON.stringify(v ?? null)
  const isPlain =
    /^[A-Za-z_/][\w ./@+-]*$/.test(v) && !/^(true|false|yes|no|on|off|null|y|n)$/i.test(v) && !v.endsWith(' ')
  return isPlain ? v : JSON.stringify(v)
}
