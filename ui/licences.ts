// What the program is made of, and under which licences: the npm packages in the pages, and the Go modules in the server
// and in the agent.
// The build writes it to licences.json beside the pages, for Settings > About.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import license from 'rollup-plugin-license'

interface Licence {
  kind: 'Go' | 'npm'
  name: string
  version: string
  licence: string
  text: string
}

const textMax = 30_000

// licenceOf names the licences whose words are in a text.
function licenceOf(text: string): string {
  const t = text.replaceAll(/\s+/g, ' ')
  const is = [
    /Apache License,? Version 2\.0/i.test(t) && 'Apache-2.0',
    /Redistribution and use in source and binary forms/i.test(t) &&
      (/be used to endorse/i.test(t) ? 'BSD-3-Clause' : 'BSD-2-Clause'),
    /Permission to use, copy, modify, and\/or distribute/i.test(t) && 'ISC',
    /Permission is hereby granted, free of charge/i.test(t) && 'MIT',
    /Mozilla Public License,? v?(ersion )?2\.0/i.test(t) && 'MPL-2.0',
  ].filter(Boolean)
  return is.length > 0 ? is.join(' AND ') : 'see its text'
}

// goModules asks Go which modules are linked into the server and the agent, and reads their licences out of its module cache.
function goModules(root: string): Licence[] {
  const list = execFileSync(
    'go',
    [
      'list',
      '-deps',
      '-f',
      '{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}',
      './cmd/slipway',
      './cmd/slipway-agent',
    ],
    { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 },
  )
  return [...new Set(list.split('\n').filter((l) => l !== ''))].sort().map((line) => {
    const [name = '', version = '', dir = ''] = line.split('\t')
    const files = readdirSync(dir, { withFileTypes: true }).filter(
      (f) => f.isFile() && /^(licen[cs]e|copying)/i.test(f.name),
    )
    const text = files.map((f) => readFileSync(join(dir, f.name), 'utf8')).join('\n')
    return { kind: 'Go', name, version, licence: text ? licenceOf(text) : 'none with it', text: text.slice(0, textMax) }
  })
}

// licences is a plugin of the build.
export function licences(root: string) {
  const npm: Licence[] = []
  return [
    license({
      thirdParty: (parts) => {
        for (const p of parts)
          npm.push({
            kind: 'npm',
            name: p.name ?? '',
            version: p.version ?? '',
            licence: p.license ?? 'see its text',
            text: (p.licenseText ?? '').slice(0, textMax),
          })
      },
    }),
    {
      name: 'slipway-licences',
      apply: 'build' as const,
      generateBundle: {
        order: 'post' as const,
        handler(this: { emitFile: (f: object) => void; warn: (m: string) => void }) {
          let go: Licence[] = []
          try {
            go = goModules(root)
          } catch (err) {
            this.warn(`the Go modules could not be listed: ${err}`)
          }
          npm.sort((a, b) => a.name.localeCompare(b.name))
          this.emitFile({ type: 'asset', fileName: 'licences.json', source: JSON.stringify([...go, ...npm]) })
        },
      },
    },
  ]
}
