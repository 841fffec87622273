export type Sort = ' ' | '+' | '-' | '@'

export interface DiffLine {
  sort: Sort
  text: string
}

// mostWork bounds what is compared exactly: beyond it, one block takes the place of another.
const mostWork = 4_000_000

// diffLines compares two texts by lines, with the longest common run of lines kept.
export function diffLines(before: string, after: string): DiffLine[] {
  const a = linesOf(before)
  const b = linesOf(after)
  let begin = 0
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++
  let end = 0
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  return [
    ...a.slice(0, begin).map(line(' ')),
    ...middle(a.slice(begin, a.length - end), b.slice(begin, b.length - end)),
    ...a.slice(a.length - end).map(line(' ')),
  ]
}

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
const line = (sort: Sort) => (text: string) => ({ sort, text })

function middle(a: string[], b: string[]): DiffLine[] {
  if (a.length * b.length > mostWork || a.length === 0 || b.length === 0) {
    return [...a.map(line('-')), ...b.map(line('+'))]
  }
  // lengths[i][j] is the longest common run of what is left of a from i and of b from j.
  const width = b.length + 1
  const lengths = new Uint32Array((a.length + 1) * width)
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const out: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ sort: ' ', text: a[i] as string })
      i++
      j++
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) {
      out.push({ sort: '-', text: a[i++] as string })
    } else {
      out.push({ sort: '+', text: b[j++] as string })
    }
  }
  return out
}

// around leaves out what did not change, but for some lines about what did.
export function around(all: DiffLine[], context = 3): DiffLine[] {
  const near = all.map(() => false)
  all.forEach((l, i) => {
    if (l.sort !== ' ')
      for (let k = Math.max(0, i - context); k <= Math.min(all.length - 1, i + context); k++) near[k] = true
  })
  const out: DiffLine[] = []
  all.forEach((l, i) => {
    if (near[i]) out.push(l)
    else if (i === 0 || near[i - 1]) out.push({ sort: '@', text: '…' })
  })
  return out
}

// unified reads a unified diff.
export function unified(text: string): DiffLine[] {
  return linesOf(text)
    .filter((l) => !l.startsWith('--- '))
    .map((l) => {
      if (l.startsWith('+++ ')) return { sort: '@', text: l.slice(4).replace(/ \(after\).*$/, '') }
      if (l.startsWith('@@')) return { sort: '@', text: l }
      const sort = l[0] === '+' || l[0] === '-' ? l[0] : ' '
      return { sort, text: l.slice(1) }
    })
}
