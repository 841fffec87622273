import { useQuery } from '@tanstack/react-query'
import { api, must } from './client'

export type Role = 'viewer' | 'operator' | 'admin'
const roles: Role[] = ['viewer', 'operator', 'admin']

export interface Grant {
  role: Role
  pool?: string // without it everywhere
}

// Me is who is logged in, and what that one may do.
export interface Me {
  name: string // "user anna", "token ci"
  user?: string // the user's name; none for a token without an owner
  displayName?: string
  via: 'login' | 'token' | 'socket'
  grants: Grant[]
  needsSetup: boolean // there is no user yet
  hasPassword?: boolean
  hasSecondFactor?: boolean
  mustSetUpSecondFactor?: boolean // before anything else
}

// useMe gives who is logged in; undefined until the server has said it.
export function useMe(): Me | undefined {
  return useQuery({
    queryKey: ['me'],
    queryFn: async () => (await must((api.GET as (p: string) => Promise<{ data?: unknown }>)('/api/v1/me'))) as Me,
  }).data
}

const rank = (r: Role | undefined) => (r ? roles.indexOf(r) : -1)

// roleOf gives the highest role that counts: in that pool, everywhere (pool ''), or anywhere when no pool is said.
export function roleOf(me: Me | undefined, pool?: string): Role | undefined {
  let best: Role | undefined
  for (const g of me?.grants ?? []) {
    const counts = pool === undefined || !g.pool || g.pool === pool
    if (counts && rank(g.role) > rank(best)) best = g.role
  }
  return best
}

// may says whether a role is held: in a pool, everywhere (pool ''), or anywhere at all when no pool is said. The server
// has the last word.
export function may(me: Me | undefined, role: Role, pool?: string): boolean {
  return rank(roleOf(me, pool)) >= rank(role)
}

// mayNot says why an action is not offered, for a disabled button; undefined when it is.
export function mayNot(me: Me | undefined, role: Role, pool?: string): string | undefined {
  if (may(me, role, pool)) return undefined
  const has = roleOf(me, pool)
  const where = pool === undefined ? '' : pool === '' ? ' everywhere' : ` in pool ${pool}`
  return `needs role ${role}${where}; you are ${has ?? 'nobody there'}`
}

// mayNotOn says why an action on a host is not offered to who has that role on it; undefined when it is. Until the server has
// said which role that is, nothing is offered that a role everywhere does not allow.
export function mayNotOn(me: Me | undefined, needs: Role, has: Role | undefined): string | undefined {
  if (may(me, needs, '')) return undefined
  if (!may(me, needs)) return mayNot(me, needs)
  if (has === undefined) return 'the server has not answered yet whether you may'
  return rank(has) >= rank(needs) ? undefined : `needs role ${needs} in the pool of this host; you are ${has} there`
}

// useMayNotOn says the same of a host. Which pool holds it is for the server to say: pools choose by what it is made of, and who
// has it is for the pool of its machine.
export function useMayNotOn(host: string): (needs: Role) => string | undefined {
  const me = useMe()
  const role = useQuery({
    queryKey: ['hosts', host, 'role'],
    queryFn: async () =>
      (await must(api.GET('/api/v1/hosts/{host}/role', { params: { path: { host } } }))) as { role: Role },
    enabled: me?.grants.some((g) => g.pool) ?? false,
  }).data?.role
  return (needs) => me && mayNotOn(me, needs, role)
}
