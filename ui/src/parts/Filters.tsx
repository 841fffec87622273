import {
  Button,
  FormSelect,
  FormSelectOption,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core'
import { Children, type ReactNode, useState } from 'react'
import { useSearchParams } from 'react-router'

// useAddress keeps what a list shows in the address of the page.
export function useAddress() {
  const [params, setParams] = useSearchParams()
  return {
    get: (key: string) => params.get(key) ?? '',
    set: (key: string, value: string) =>
      setParams(
        (p) => {
          if (value) p.set(key, value)
          else p.delete(key)
          return p
        },
        { replace: true },
      ),
    isEmpty: params.size === 0,
    clear: () => setParams({}, { replace: true }),
  }
}

// Filters stand above a list.
export function Filters({ children }: { children: ReactNode }) {
  return (
    <Toolbar>
      <ToolbarContent alignItems="center">
        {Children.map(children, (filter) => filter && <ToolbarItem>{filter}</ToolbarItem>)}
      </ToolbarContent>
    </Toolbar>
  )
}

interface Filter {
  label: string
  value: string
  set: (v: string) => void
}

// ChoiceFilter keeps to one of a few values.
export function ChoiceFilter(p: Filter & { choices: [value: string, label: string][] }) {
  return (
    <FormSelect aria-label={p.label} value={p.value} onChange={(_, v) => p.set(v)}>
      {p.choices.map(([value, label]) => (
        <FormSelectOption key={value} value={value} label={label} />
      ))}
    </FormSelect>
  )
}

// ExactFilter is applied with Enter: the server looks for exactly that.
export function ExactFilter(p: Filter & { placeholder: string }) {
  const [text, setText] = useState(p.value)
  const [seen, see] = useState(p.value)
  if (seen !== p.value) {
    see(p.value)
    setText(p.value)
  }
  return (
    <SearchInput
      aria-label={p.label}
      placeholder={p.placeholder}
      value={text}
      onChange={(_, v) => setText(v)}
      onSearch={(_, v) => p.set(v.trim())}
      onClear={() => {
        setText('')
        p.set('')
      }}
    />
  )
}

// More shows the next part of a long list.
export function More({ has, shown, most, more }: { has: boolean; shown: number; most: number; more: () => void }) {
  if (!has) return null
  if (shown >= most) return <p>There are more: add a filter, or use the command below.</p>
  return (
    <Button variant="link" onClick={more}>
      Show more
    </Button>
  )
}
