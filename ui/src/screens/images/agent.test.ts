import { expect, test } from 'vitest'
import { isAgent } from './agent'

test('the agent is known by the name that the server looks for, whatever system it was imported as', () => {
  const all = [
    { name: 'agent-x86-64', os: 'custom' },
    { name: 'agent-arm64', os: 'slipway-agent' },
    { name: 'debian-12', os: 'debian' },
    { name: 'agent-of-mine', os: 'slipway-agent' },
  ]
  expect(all.filter(isAgent).map((i) => i.name)).toEqual(['agent-x86-64', 'agent-arm64'])
})
