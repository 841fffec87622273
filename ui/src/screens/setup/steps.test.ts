import { expect, test } from 'vitest'
import { nameOf, suggest } from './steps'

test('the upper half of a network is suggested, beside the own address', () => {
  expect(suggest('10.77.0.1/16')).toEqual({ cidr: '10.77.0.0/16', first: '10.77.128.0', last: '10.77.255.254' })
  expect(suggest('192.168.1.10/24')).toEqual({ cidr: '192.168.1.0/24', first: '192.168.1.128', last: '192.168.1.254' })
  expect(suggest('192.168.1.130/24')).toEqual({ cidr: '192.168.1.0/24', first: '192.168.1.131', last: '192.168.1.254' })
  expect(suggest('192.168.1.250/24')).toEqual({ cidr: '192.168.1.0/24', first: '192.168.1.128', last: '192.168.1.249' })
  expect(suggest('10.0.0.1/31')).toBeUndefined()
  expect(suggest('fe80::1/64')).toBeUndefined()
})

test('an interface names its subnet', () => {
  expect(nameOf('eth0.12')).toBe('eth0-12')
  expect(nameOf('Br_LAN')).toBe('br-lan')
  expect(nameOf('--')).toBe('boot')
})
