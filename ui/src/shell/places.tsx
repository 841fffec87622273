import { type ComponentType, lazy, useState } from 'react'
import { matchPath } from 'react-router'

// Place is a screen: where it is, what it is called, and the key after g that goes there.
export interface Place {
  path: string // of its routes; /* when it has pages below
  name: string // in the navigation; '' for pages that are reached from others
  key?: string
  group?: string
  screen: ComponentType & { load: () => Promise<unknown> }
}

// A screen is loaded when it is first shown, or when load is called. One that is there already is shown at once: what React
// waits for is shown 300 ms after its placeholder at the earliest, however soon it comes.
function screen<K extends string>(name: K, load: () => Promise<Record<K, ComponentType>>) {
  let is: ComponentType | undefined
  const get = async () => {
    is = (await load())[name]
    return { default: is }
  }
  const Later = lazy(get)
  // biome-ignore lint/correctness/noComponentHookFactories: one is made for each screen, when the program begins
  function Either() {
    const [Now] = useState<ComponentType>(() => is ?? Later)
    return <Now />
  }
  return Object.assign(Either, { load: get })
}

// places are all screens, in the order of the navigation.
export const places: Place[] = [
  { path: '/', name: 'Overview', key: 'o', screen: screen('Overview', () => import('../screens/overview/Overview')) },
  {
    path: '/hosts',
    name: 'Hosts',
    group: 'Hardware',
    key: 'h',
    screen: screen('Hosts', () => import('../screens/hosts/Hosts')),
  },
  { path: '/hosts/:name', name: '', screen: screen('Host', () => import('../screens/host/Host')) },
  {
    path: '/racks/*',
    name: 'Racks',
    group: 'Hardware',
    key: 'r',
    screen: screen('Racks', () => import('../screens/racks/Racks')),
  },
  {
    path: '/machines/*',
    name: 'Machines',
    group: 'Servers',
    key: 'm',
    screen: screen('Machines', () => import('../screens/machines/Machines')),
  },
  {
    path: '/pools/*',
    name: 'Pools',
    group: 'Servers',
    key: 'p',
    screen: screen('Pools', () => import('../screens/pools/Pools')),
  },
  {
    path: '/clusters/*',
    name: 'Clusters',
    group: 'Servers',
    key: 'c',
    screen: screen('Clusters', () => import('../screens/clusters/Clusters')),
  },
  {
    path: '/images/*',
    name: 'Images',
    group: 'What they run',
    key: 'i',
    screen: screen('Images', () => import('../screens/images/Images')),
  },
  {
    path: '/profiles/*',
    name: 'Profiles',
    group: 'What they run',
    key: 'f',
    screen: screen('Profiles', () => import('../screens/profiles/Profiles')),
  },
  {
    path: '/networks/*',
    name: 'Networks',
    group: 'Hardware',
    key: 'n',
    screen: screen('Networks', () => import('../screens/networks/Networks')),
  },
  {
    path: '/operations/*',
    name: 'Operations',
    group: 'What happens',
    key: 'x',
    screen: screen('Operations', () => import('../screens/operations/Operations')),
  },
  {
    path: '/issues/*',
    name: 'Issues',
    group: 'What happens',
    key: 'u',
    screen: screen('Issues', () => import('../screens/issues/Issues')),
  },
  {
    path: '/audit/*',
    name: 'Audit',
    group: 'What happens',
    key: 'a',
    screen: screen('Audit', () => import('../screens/audit/Audit')),
  },
  {
    path: '/instances',
    name: 'Instances',
    group: 'What happens',
    key: 'e',
    screen: screen('Instances', () => import('../screens/instances/Instances')),
  },
  {
    path: '/settings/*',
    name: 'Settings',
    key: 's',
    screen: screen('Settings', () => import('../screens/settings/Settings')),
  },
  { path: '/setup', name: '', screen: screen('Setup', () => import('../screens/setup/Setup')) },
]

// linkOf is where the navigation goes.
export const linkOf = (p: Pick<Place, 'path'>) => p.path.replace('/*', '')

// loadAt loads the screen of a path; who shows it says why when that fails.
export async function loadAt(pathname: string) {
  const place = places.find((p) => matchPath(p.path, pathname))
  await place?.screen.load().catch(() => {})
}
