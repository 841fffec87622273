// The screens of the web UI, read from the table that its navigation is made of: whoever adds one has it looked at.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './rack.mjs'

const source = readFileSync(join(root, 'ui', 'src', 'shell', 'places.tsx'), 'utf8')
const entry = /\{\s*path: '([^']+)',\s*name: '([^']*)',([^{}]*?)screen: screen\(/g
const settings = readFileSync(join(root, 'ui', 'src', 'screens', 'settings', 'Settings.tsx'), 'utf8')
const hostPage = readFileSync(join(root, 'ui', 'src', 'screens', 'host', 'Host.tsx'), 'utf8')

// places are all screens: path of the routes, name in the navigation, key after g.
export const places = [...source.matchAll(entry)].map(([, path, name, more]) => ({ path, name, key: /key: '(.)'/.exec(more)?.[1], link: path.replace('/*', '') }))
if (places.length !== [...source.matchAll(/screen: screen\(/g)].length) throw new Error('places.tsx has screens that are not found here')

const tabs = (text, re) => [...text.matchAll(re)].map(([, key]) => `?tab=${key}`)

// parts are the pages and tabs of a screen, after its address; {host} and the like are filled in by what there is. A screen
// that is not listed is looked at as it first shows.
export const parts = {
  '/hosts': ['', '?group=state'],
  '/hosts/:name': tabs(hostPage, /^ {2}\['(\w+)', '[^']+', \(h\) =>/gm),
  '/racks/*': ['', '?tab=cables'],
  '/machines/*': ['', '?do=create', '/web-02'],
  '/pools/*': ['', '/web'],
  '/clusters/*': ['', '?tab=targets'],
  '/images/*': ['', '/debian-12'],
  '/profiles/*': ['', '?tab=layers', '/debian-web', '/debian-web?tab=hosts', '/debian-web?tab=revisions'],
  '/networks/*': ['', '/vs', '/vs?tab=reservations', '/vs?tab=conflicts', '/vs?tab=others'],
  '/operations/*': ['', '/{operation}'],
  '/issues/*': ['', '?all=yes'],
  '/audit/*': ['', '/{audit}'],
  '/settings/*': [...tabs(settings, /^ {2}\['(\w+)', '[^']+', </gm), '?tab=acceptrules', '?tab=goldens'],
  '/setup': ['', '?step=network', '?step=account', '?step=image', '?step=accept', '?step=machines'],
}
for (const path of Object.keys(parts)) if (!places.some((p) => p.path === path)) throw new Error(`places.tsx has no ${path}`)
for (const path of ['/hosts/:name', '/settings/*']) if (parts[path].length < 5) throw new Error(`the tabs of ${path} are not found here`)

// addresses are those of all parts of all screens, with names for pictures. known has what stands for {…} and :name.
export function addresses(known) {
  const all = []
  for (const p of places)
    for (const part of parts[p.path] ?? ['']) {
      const path = (p.link + part).replace(':name', known.name).replace(/\{(\w+)\}/g, (_, k) => known[k])
      const name = (p.link + part).replace(':name', '').replace(/\?(tab|step|do)=/, '-').replace(/\W+/g, '-').replace(/^-|-$/g, '')
      all.push({ path, name: name || 'overview', place: p })
    }
  return all
}
