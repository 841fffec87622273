// @vitest-environment happy-dom
import { act, renderHook } from '@testing-library/react'
import type { ReactNode } from 'react'
import { MemoryRouter } from 'react-router'
import { beforeEach, expect, test, vi } from 'vitest'
import { useTyped } from './typed'

beforeEach(() => void vi.useFakeTimers())

// A page whose address follows as late as the test says, as it does while there is much to draw.
function page() {
  const asked: string[] = []
  const set = ({ q }: { q: string }) => void asked.push(q)
  const wrapper = ({ children }: { children: ReactNode }) => (
    <MemoryRouter initialEntries={[window.location.pathname]}>{children}</MemoryRouter>
  )
  const hook = renderHook(({ q }) => useTyped({ q, set }), { initialProps: { q: '' }, wrapper })
  return {
    asked,
    typed: () => hook.result.current[0],
    type: (text: string) => act(() => hook.result.current[1](text)),
    pause: () => act(() => vi.advanceTimersByTime(250)),
    address: (q: string) => act(() => hook.rerender({ q })),
  }
}

test('what is typed stays while the address follows late', () => {
  const p = page()
  p.type('ra')
  p.pause()
  p.type('rack')
  p.pause()
  p.type('rack=R1')
  expect(p.asked).toEqual(['ra', 'rack'])
  p.address('ra') // only now
  expect(p.typed()).toBe('rack=R1')
  p.address('rack')
  expect(p.typed()).toBe('rack=R1')
  p.pause()
  p.address('rack=R1')
  expect(p.typed()).toBe('rack=R1')
  expect(p.asked).toEqual(['ra', 'rack', 'rack=R1'])
})

test('an address from elsewhere is taken into the box', () => {
  const p = page()
  p.type('rack')
  p.pause()
  p.address('rack')
  p.address('state=failed') // a view
  expect(p.typed()).toBe('state=failed')
  p.address('') // the way back
  expect(p.typed()).toBe('')
  p.pause()
  expect(p.asked).toEqual(['rack'])
})
