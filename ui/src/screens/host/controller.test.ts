import { expect, test } from 'vitest'
import { begin, bodyOf } from './controller'

const webhook = {
  driver: 'webhook',
  address: 'https://pdu',
  username: 'root',
  system: '7',
  options: { 'on.path': '/on', auth: 'basic' },
}

test('options of one driver do not wander to another', () => {
  const was = begin('webhook', webhook)
  expect(bodyOf(was).options).toEqual({ 'on.path': '/on', auth: 'basic' })
  expect(bodyOf(begin('redfish', webhook))).toEqual({ driver: 'redfish' })
  expect(begin('webhook', webhook)).toEqual(was)
})

test('what is empty is not sent', () => {
  expect(bodyOf(begin('manual', null))).toEqual({ driver: 'manual' })
})
