import {
  Button,
  Dropdown,
  DropdownGroup,
  DropdownItem,
  DropdownList,
  MenuToggle,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core'
import { memo, useState } from 'react'
import { mayNot, useMe } from '../../api/me'
import type { HostRow } from '../../api/rows'
import { BulkAsk } from './BulkAsk'
import { type Verb, verbs } from './verbs'

// What stands in the bar itself; the rest is under More.
const first = ['accept', 'inspect', 'install', 'power-on', 'power-off']

// BulkBar is what can be done with the hosts that are selected. There is always one, so that the table does not jump.
export const BulkBar = memo(function BulkBar({
  hosts,
  hidden,
  selector,
  clear,
}: {
  hosts: HostRow[]
  hidden: number
  selector?: string | undefined
  clear: () => void
}) {
  const me = useMe()
  const [isOpen, setOpen] = useState(false)
  const [asked, ask] = useState<{ verb: Verb; hosts: HostRow[] }>()
  const not = hosts.length === 0 ? 'select hosts first' : me && mayNot(me, 'operator')
  const button = (v: Verb) => (
    <ToolbarItem key={v.key}>
      <Button
        variant="secondary"
        size="sm"
        isAriaDisabled={Boolean(not)}
        {...(not && { title: not })}
        onClick={() => not || ask({ verb: v, hosts })}
      >
        {v.title}
      </Button>
    </ToolbarItem>
  )
  const more = verbs.filter((v) => !first.includes(v.key))
  return (
    <>
      <Toolbar
        aria-label="Actions on the selected hosts"
        className="hosts-bar"
        data-empty={hosts.length === 0 || undefined}
      >
        <ToolbarContent>
          <ToolbarItem alignSelf="center">
            <span aria-live="polite">
              {hosts.length} selected{hidden > 0 && `, ${hidden} of them not shown`}
            </span>
          </ToolbarItem>
          {hosts.length > 0 && (
            <ToolbarItem>
              <Button variant="link" size="sm" onClick={clear}>
                Clear
              </Button>
            </ToolbarItem>
          )}
          {verbs.filter((v) => first.includes(v.key)).map(button)}
          <ToolbarItem>
            <Dropdown
              isOpen={isOpen}
              onOpenChange={setOpen}
              onSelect={() => setOpen(false)}
              isScrollable
              toggle={(ref) => (
                <MenuToggle
                  ref={ref}
                  size="sm"
                  isExpanded={isOpen}
                  isDisabled={Boolean(not)}
                  {...(not && { title: not })}
                  onClick={() => setOpen(!isOpen)}
                >
                  More actions
                </MenuToggle>
              )}
            >
              {['Life', 'Power', 'Flags', 'Change'].map((group) => (
                <DropdownGroup key={group} label={group}>
                  <DropdownList>
                    {more
                      .filter((v) => v.group === group)
                      .map((v) => (
                        <DropdownItem key={v.key} isDanger={Boolean(v.warns)} onClick={() => ask({ verb: v, hosts })}>
                          {v.title}
                        </DropdownItem>
                      ))}
                  </DropdownList>
                </DropdownGroup>
              ))}
            </Dropdown>
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {asked && <BulkAsk key={asked.verb.key} {...asked} selector={selector} close={() => ask(undefined)} />}
    </>
  )
})
