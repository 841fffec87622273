import { send } from './act'

// Ceremony is what the server asks of a security key.
interface Ceremony {
  options: unknown
  ticket: string
}

export interface KeyAnswer {
  ticket: string
  response: unknown
}

// canUseKeys says whether this browser offers security keys on this page: it does so only with TLS and under a name.
export const canUseKeys = () =>
  typeof PublicKeyCredential !== 'undefined' &&
  'parseCreationOptionsFromJSON' in PublicKeyCredential &&
  !/^[\d.]+$|^\[/.test(location.hostname)

// createKey asks a new key to answer for a user.
export async function createKey(user: string): Promise<KeyAnswer> {
  const path = `/users/${encodeURIComponent(user)}/security-keys`
  const { options, ticket } = await send<Ceremony>({ method: 'POST', path })
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON)
  return answer(ticket, await navigator.credentials.create({ publicKey }))
}

// askKey has one of a user's keys answer, for a login.
export async function askKey(user: string, password: string): Promise<KeyAnswer> {
  const { options, ticket } = await send<Ceremony>({
    method: 'POST',
    path: '/logins/security-key',
    body: { user, password },
  })
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON)
  return answer(ticket, await navigator.credentials.get({ publicKey }))
}

function answer(ticket: string, credential: Credential | null): KeyAnswer {
  if (!(credential instanceof PublicKeyCredential)) throw new Error('The browser gave no answer of a security key.')
  return { ticket, response: credential.toJSON() }
}
