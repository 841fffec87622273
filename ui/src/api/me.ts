import { useQuery } from '@tanstack/react-query'
import { api, must, type Schemas } from './client'

// Grant is a role in a pool; without a pool everywhere.
export type Grant = Schemas['Grant']
export type Role = Grant['role']
export const ranks: Role[] = ['viewer', 'operator', 'admin']

// Me is who is logged in, and what that one may do.
export type Me = Schemas['Me']

// useMe gives who is logged in; undefined until the server has said it.
export function useMe(): Me | undefined {
  return useQuery({
    queryKey: ['me'],
    queryFn: () => must(api.GET('/api/v1/me')),
  }).data
}

const rank = (is: string | undefined) => ranks.findIndex((r) => r === is)

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

// useMayNot says why an action is not offered to whoever is logged in; until the server has said who that is, it is offered.
export function useMayNot(role: Role, pool?: string): string | undefined {
  const me = useMe()
  return me && mayNot(me, role, pool)
}

// mayNotOn says why an action on a host is not offered to who has that role on it; undefined when it is. Until the server has
// said which role that is, nothing is offered that a role everywhere does not allow.
export function mayNotOn(me: Me | undefined, needs: Role, has: string | undefined): string | undefined {
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
    queryFn: () => must(api.GET('/api/v1/hosts/{host}/role', { params: { path: { host } } })),
    enabled: me?.grants.some((g) => g.pool) ?? false,
  }).data?.role
  return (needs) => me && mayNotOn(me, needs, role)
}
