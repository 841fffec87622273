// @vitest-environment happy-dom
import { beforeEach, expect, test } from 'vitest'
import { draftKey, keepDraftsOf } from './drafts'

const keys = () => Object.keys(sessionStorage).toSorted()

beforeEach(() => {
  sessionStorage.clear()
  sessionStorage.setItem(draftKey('user anna', 'profile/web'), 'hers')
  sessionStorage.setItem(draftKey('user anna', 'layer/global'), 'hers')
  sessionStorage.setItem(draftKey('user annabel', 'profile/web'), 'of another')
  sessionStorage.setItem('slipway-something', 'else')
})

test('whoever comes in finds the own drafts only', () => {
  keepDraftsOf('user anna')
  expect(keys()).toEqual([
    'slipway-draft:user anna:layer/global',
    'slipway-draft:user anna:profile/web',
    'slipway-something',
  ])
})

test('whoever leaves leaves no draft', () => {
  keepDraftsOf()
  expect(keys()).toEqual(['slipway-something'])
})
