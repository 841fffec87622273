import type { Schemas } from '../../api/client'
import { wordsOf } from '../../parts/written'

type Consumers = Schemas['Consumers']

const nouns = { pool: 'pools', profile: 'profiles', target: 'targets' } as const

// consumersText writes consumers as the command line does: pool:web profile:debian.
export const consumersText = (c: Consumers | undefined) =>
  Object.entries(nouns)
    .flatMap(([noun, list]) => (c?.[list] ?? []).map((name) => `${noun}:${name}`))
    .join(' ')

// consumersOf reads what consumersText wrote; undefined if it is something else.
export function consumersOf(text: string): Consumers | undefined {
  const c = { pools: [] as string[], profiles: [] as string[], targets: [] as string[] }
  for (const word of wordsOf(text)) {
    const [, noun, name] = /^(pool|profile|target):(.+)$/.exec(word) ?? []
    if (!noun || !name) return undefined
    c[nouns[noun as keyof typeof nouns]].push(name)
  }
  return c
}
