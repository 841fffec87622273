// types.mjs writes what the UI takes from the description of the API: the types, and how nouns are read and written.
import { writeFileSync } from 'node:fs'
import openapi, { astToString, COMMENT_HEADER } from 'openapi-typescript'

const nouns = {}
const types = await openapi(new URL('../web/openapi.yaml', import.meta.url), {
  transform(schema) {
    const noun = schema['x-noun']
    if (!noun) return
    const own = Object.entries(schema.properties).flatMap(([name, p]) => (p.readOnly ? [name] : []))
    nouns[noun.many] = { ...noun, own }
  },
})
const write = (name, text) => writeFileSync(new URL(`src/api/${name}`, import.meta.url), COMMENT_HEADER + text)
write('schema.d.ts', astToString(types))
const typed = Object.keys(nouns).map((key) => `  ${key}: Described<'${key}'>\n`)
write(
  'nouns.ts',
  `import type { Described } from './described'\n\nexport const nouns: {\n${typed.join('')}} = ${JSON.stringify(nouns, null, 2)}\n`,
)
