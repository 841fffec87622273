import { readPairs, writePairs } from '../../parts/written'

// Entered is what the form of a controller holds.
export interface Entered {
  driver: string
  address: string
  username: string
  password: string
  system: string
  fingerprint: string
  mac: string
  insecure: boolean
  options: string
}

type Stored = {
  driver: string
  address?: string
  username?: string
  system?: string
  fingerprint?: string
  mac?: string
  insecureSkipVerify?: boolean
  options?: Record<string, string>
}

export const drivers = ['redfish', 'ipmi', 'libvirt', 'webhook', 'wol', 'manual', 'fake']

// begin is what the form begins with for a driver: what is stored, or nothing. What was said of one driver is not true of another:
// the paths of a webhook mean nothing to Redfish, and no password goes to another address.
export function begin(driver: string, stored: Stored | null): Entered {
  const s = stored?.driver === driver ? stored : undefined
  return {
    driver,
    address: s?.address ?? '',
    username: s?.username ?? '',
    password: '',
    system: s?.system ?? '',
    fingerprint: s?.fingerprint ?? '',
    mac: s?.mac ?? '',
    insecure: s?.insecureSkipVerify ?? false,
    options: writePairs(s?.options ?? {}),
  }
}

// bodyOf is what is sent.
export const bodyOf = (e: Entered) => ({
  driver: e.driver,
  ...(e.address && { address: e.address }),
  ...(e.username && { username: e.username }),
  ...(e.password && { password: e.password }),
  ...(e.system && { system: e.system }),
  ...(e.fingerprint && { fingerprint: e.fingerprint }),
  ...(e.mac && { mac: e.mac }),
  ...(e.insecure && { insecureSkipVerify: true }),
  ...(e.options.trim() && { options: readPairs(e.options) }),
})
