// turns are the characters that turn the direction of writing: with them "gpj.exe" reads as "exe.jpg".
const turns = /\p{Bidi_Control}/u

// Screen is a small terminal: it keeps lines, follows the escape codes that consoles of firmware and boot loaders use to
// move and to clear, and leaves out colours and all else. It is bounded, for what it reads comes from a machine.
export class Terminal {
  private lines: string[] = ['']
  private row = 0
  private column = 0
  private top = 0 // line at which the screen begins, for codes that count from its corner
  private rest = ''

  constructor(
    private readonly mostLines = 5000,
    private readonly rows = 25,
    private readonly columns = 240,
  ) {}

  // write takes what came, in pieces of any size.
  write(text: string) {
    const all = this.rest + text
    this.rest = ''
    for (let i = 0; i < all.length; ) {
      const c = all[i] as string
      if (c === '\x1b') {
        const used = this.escape(all, i)
        if (used === 0) {
          this.rest = all.slice(i, i + 256) // the rest of the code has yet to come
          if (all.length - i > 256) this.rest = ''
          return
        }
        i += used
        continue
      }
      this.plain(c)
      i++
    }
  }

  text(): string {
    return this.lines.join('\n')
  }

  private plain(c: string) {
    if (c === '\n') return this.down()
    if (c === '\r') {
      this.column = 0
    } else if (c === '\b') {
      this.column = Math.max(0, this.column - 1)
    } else if (c === '\t') {
      this.column = Math.min(this.columns - 1, (Math.floor(this.column / 8) + 1) * 8)
    } else if (c >= ' ' && c !== '\x7f' && !turns.test(c)) {
      if (this.column >= this.columns) {
        this.column = 0
        this.down()
      }
      const l = (this.lines[this.row] ?? '').padEnd(this.column)
      this.lines[this.row] = l.slice(0, this.column) + c + l.slice(this.column + 1)
      this.column++
    }
  }

  private down() {
    this.goTo(this.row + 1)
    if (this.row - this.top >= this.rows) this.top = this.row - this.rows + 1
  }

  private goTo(row: number) {
    this.row = Math.max(0, row)
    while (this.lines.length <= this.row) this.lines.push('')
    const over = this.lines.length - this.mostLines
    if (over > 0) {
      this.lines.splice(0, over)
      this.row = Math.max(0, this.row - over)
      this.top = Math.max(0, this.top - over)
    }
  }

  // escape obeys one code and returns how long it is; 0 when its end has not come yet.
  private escape(all: string, at: number): number {
    const kind = all[at + 1]
    if (kind === undefined) return 0
    if (kind === '[') {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what escape codes are made of
      const m = /^\x1b\[([0-?]*)[ -/]*([@-~])/.exec(all.slice(at, at + 64))
      if (!m) return all.length - at >= 64 ? 2 : 0
      this.control(m[1] ?? '', m[2] ?? '')
      return m[0].length
    }
    if (kind === ']' || kind === 'P' || kind === '_' || kind === '^') {
      const bell = all.indexOf('\x07', at)
      const end = all.indexOf('\x1b\\', at + 2)
      if (bell >= 0 && (end < 0 || bell < end)) return bell - at + 1
      if (end >= 0) return end - at + 2
      return all.length - at > 256 ? 2 : 0
    }
    if (kind === 'c') this.clear()
    return kind === '(' || kind === ')' || kind === '#' ? (all.length > at + 2 ? 3 : 0) : 2
  }

  private control(parameters: string, final: string) {
    const n = parameters.split(';').map((x) => Math.min(Number.parseInt(x, 10) || 0, 1000))
    const first = n[0] ?? 0
    const count = Math.max(1, first)
    const line = this.lines[this.row] ?? ''
    switch (final) {
      case 'A':
        return this.goTo(Math.max(this.top, this.row - count))
      case 'B':
        return this.goTo(this.row + count)
      case 'C':
        this.column = Math.min(this.columns - 1, this.column + count)
        return
      case 'D':
        this.column = Math.max(0, this.column - count)
        return
      case 'G':
        this.column = Math.min(this.columns, count) - 1
        return
      case 'H':
      case 'f':
        this.goTo(this.top + Math.min(this.rows, Math.max(1, first)) - 1)
        this.column = Math.min(this.columns, Math.max(1, n[1] ?? 1)) - 1
        return
      case 'J':
        if (first === 2 || first === 3) this.clear()
        else if (first === 0) {
          this.lines[this.row] = line.slice(0, this.column)
          this.lines.length = this.row + 1
        }
        return
      case 'K':
        if (first === 0) this.lines[this.row] = line.slice(0, this.column)
        else if (first === 1) this.lines[this.row] = ' '.repeat(this.column) + line.slice(this.column)
        else this.lines[this.row] = ''
        return
    }
  }

  // clear begins a new screen below: what was there can still be read.
  private clear() {
    if (this.lines.length > 1 || this.lines[0] !== '') this.lines.push('')
    this.goTo(this.lines.length - 1)
    this.top = this.row
    this.column = 0
  }
}

// keyOf is what a key types on a serial console; undefined for keys that the browser keeps.
export function keyOf(e: { key: string; ctrlKey: boolean; altKey: boolean; metaKey: boolean }): string | undefined {
  if (e.metaKey) return undefined
  if (e.ctrlKey && !e.altKey && /^[a-zA-Z@[\\\]^_]$/.test(e.key))
    return String.fromCharCode(e.key.toUpperCase().charCodeAt(0) & 31)
  if (e.ctrlKey) return undefined
  const named: Record<string, string> = {
    Enter: '\r',
    Backspace: '\x7f',
    Tab: '\t',
    Escape: '\x1b',
    ArrowUp: '\x1b[A',
    ArrowDown: '\x1b[B',
    ArrowRight: '\x1b[C',
    ArrowLeft: '\x1b[D',
    Home: '\x1b[H',
    End: '\x1b[F',
    Delete: '\x1b[3~',
    PageUp: '\x1b[5~',
    PageDown: '\x1b[6~',
    F1: '\x1bOP',
    F2: '\x1bOQ',
    F10: '\x1b[21~',
    F11: '\x1b[23~',
    F12: '\x1b[24~',
  }
  if (named[e.key] !== undefined) return named[e.key]
  if ([...e.key].length === 1) return (e.altKey ? '\x1b' : '') + e.key
  return undefined
}
