import { expect, test } from 'vitest'
import { places } from './places'

const sources = import.meta.glob<string>('../**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true })

// folderOf is where a screen's source is: the folder that is named as its path, the file beside it, or the page below it.
const folderOf: Record<string, RegExp> = Object.fromEntries(
  places
    .map((p) => /^\/(\w*)/.exec(p.path)?.[1] ?? '')
    .map((word) => [
      word,
      new RegExp(
        `screens/(${word}/|${word === 'hosts' ? 'host/|' : ''}${word.charAt(0).toUpperCase()}${word.slice(1)}\\.tsx)`,
      ),
    ]),
)
const link = /(?:to=\{?|go\()[`'"]\/(\w+)[^`'"?]*\?(\w+)=(?:[^`'"&]*&(\w+)=)?/g

// links are those with something behind a question mark.
const links = Object.entries(sources)
  .filter(([file]) => file.endsWith('.tsx'))
  .flatMap(([file, text]) =>
    [...text.matchAll(link)].map(([whole, screen = '', ...keys]) => ({ file, whole, screen, keys })),
  )
  .filter(({ screen }) => screen in folderOf)

test('there are links to look at', () => expect(links.length).toBeGreaterThan(15))

test.each(links)('$file: $whole… says something that its screen reads', ({ screen, keys }) => {
  const text = Object.entries(sources)
    .filter(([file]) => folderOf[screen]?.test(file))
    .map(([, t]) => t)
    .join('\n')
  for (const key of keys.filter(Boolean))
    expect(text).toMatch(new RegExp(`(?:[gs]et|has)\\('${key}'\\)|\\['?[^\\]]*'${key}'[^\\]]*\\]`))
})
