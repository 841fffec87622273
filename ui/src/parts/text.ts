// Edit is a piece of text to be put in place of another, and what is selected afterwards.
export interface Edit {
  from: number
  to: number
  text: string
  select: [number, number]
}

// lineStart is where a line begins, counted from 1; the end of the text for one that is not there.
export function lineStart(text: string, line: number): number {
  let at = 0
  for (let n = 1; n < line; n++) {
    const end = text.indexOf('\n', at)
    if (end < 0) return text.length + 1
    at = end + 1
  }
  return at
}

// afterTab is what Tab does: a caret gets an indent, and the selected lines are indented, or with Shift taken back.
export function afterTab(text: string, from: number, to: number, isBack: boolean, indent: string): Edit | undefined {
  if (!isBack && from === to) return { from, to, text: indent, select: [from + indent.length, from + indent.length] }
  const begin = text.lastIndexOf('\n', from - 1) + 1
  const last = to > from && text[to - 1] === '\n' ? to - 1 : to
  const end = text.indexOf('\n', last) < 0 ? text.length : text.indexOf('\n', last)
  const old = text.slice(begin, end)
  const shift = (l: string) => {
    if (!isBack) return l === '' ? l : indent + l
    return l.startsWith('\t') ? l.slice(1) : l.replace(/^ {1,2}/, '')
  }
  const now = old.split('\n').map(shift).join('\n')
  if (now === old) return undefined
  if (from === to) {
    const caret = Math.max(begin, from - (old.length - now.length))
    return { from: begin, to: end, text: now, select: [caret, caret] }
  }
  return { from: begin, to: end, text: now, select: [begin, begin + now.length] }
}

// nextHit finds a word behind a place, in any case, and begins anew at the end; -1 when it is not there.
export function nextHit(text: string, word: string, after: number): number {
  if (!word) return -1
  const all = text.toLowerCase()
  const w = word.toLowerCase()
  const hit = all.indexOf(w, after)
  return hit >= 0 ? hit : all.indexOf(w)
}
