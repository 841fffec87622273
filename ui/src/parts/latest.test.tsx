// @vitest-environment happy-dom
import { act, renderHook } from '@testing-library/react'
import { beforeEach, expect, test, vi } from 'vitest'
import { useCalm, useLatest } from './latest'

beforeEach(() => void vi.useFakeTimers())

test('what changes all the time is shown once a second, the newest of it', () => {
  const hook = renderHook(({ n, key }) => useCalm(n, key), { initialProps: { n: 0, key: 'a' } })
  const pass = (ms: number) => act(() => vi.advanceTimersByTime(ms))
  hook.rerender({ n: 1, key: 'a' })
  pass(1) // the first change is shown at once
  expect(hook.result.current).toBe(1)
  for (let n = 2; n <= 4; n++) {
    hook.rerender({ n, key: 'a' })
    pass(250)
  }
  expect(hook.result.current).toBe(1)
  pass(250)
  expect(hook.result.current).toBe(4)
})

test('with another key it follows at once, and stays', () => {
  const hook = renderHook(({ n, key }) => useCalm(n, key), { initialProps: { n: 0, key: 'a' } })
  act(() => vi.advanceTimersByTime(10))
  hook.rerender({ n: 1, key: 'a' })
  act(() => vi.advanceTimersByTime(10))
  hook.rerender({ n: 7, key: 'b' })
  expect(hook.result.current).toBe(7)
  act(() => vi.advanceTimersByTime(10))
  expect(hook.result.current).toBe(7)
})

test('who asks gets the newest, by a function that stays the same', () => {
  const hook = renderHook(({ n }) => useLatest(n), { initialProps: { n: 1 } })
  const get = hook.result.current
  hook.rerender({ n: 2 })
  expect(hook.result.current).toBe(get)
  expect(get()).toBe(2)
})
