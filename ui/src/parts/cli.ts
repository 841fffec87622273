// shell quotes a word for a command line, where it needs that.
export const shell = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

// flags writes those of the flags that have a value; true is a flag without one.
export function flags(all: Record<string, string | number | boolean | string[] | undefined>): string {
  return Object.entries(all)
    .flatMap(([name, v]) => {
      if (v === undefined || v === '' || v === false) return []
      if (v === true) return [`--${name}`]
      return (Array.isArray(v) ? v : [String(v)]).map((x) => `--${name} ${shell(x)}`)
    })
    .map((f) => ` ${f}`)
    .join('')
}
