// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'
import { Problem } from '../api/client'
import { Ask, dryOf, sentence } from './Ask'

const send = vi.hoisted(() => vi.fn())
vi.mock('../api/act', async (real) => ({ ...(await real<object>()), send }))

afterEach(() => {
  cleanup()
  send.mockReset()
})

const call = { method: 'DELETE' as const, path: '/machines/web', version: 3 }

function ask() {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Ask title="Delete web?" verb="Delete" call={call} foresees={dryOf(call)} close={() => undefined} />
    </QueryClientProvider>,
  )
  return () => (screen.getByRole('button', { name: 'Delete' }) as HTMLButtonElement).disabled
}

test('a question says what the server foresees, and nothing else is asked for', async () => {
  send.mockResolvedValue({
    isDryRun: true,
    changes: [],
    does: 'switches off host r1, wipes it (secure) and makes it free',
  })
  const isDisabled = ask()
  expect(isDisabled()).toBe(true)
  await screen.findByText('Switches off host r1, wipes it (secure) and makes it free.')
  expect(send.mock.calls).toEqual([[{ ...call, path: '/machines/web?dryRun=true' }]])
  expect(isDisabled()).toBe(false)
})

test('what the server would refuse cannot be confirmed', async () => {
  send.mockRejectedValue(new Problem(403, 'Forbidden', 'host r1 of machine web is protected: it is not wiped'))
  const isDisabled = ask()
  await screen.findByText(/host r1 of machine web is protected/)
  expect(isDisabled()).toBe(true)
})

test('a dry run keeps the rest of a query', () => {
  expect(dryOf({ method: 'DELETE', path: '/machines/web?force=true' }).path).toBe(
    '/machines/web?force=true&dryRun=true',
  )
  expect(sentence('')).toBe('')
})
