import { Divider, Dropdown, DropdownGroup, DropdownItem, DropdownList, MenuToggle } from '@patternfly/react-core'
import { UserIcon } from '@patternfly/react-icons'
import { useState } from 'react'
import { useNavigate } from 'react-router'
import { roleOf, useMe } from '../api/me'

interface Choices {
  leave: () => void
  help: () => void
}

// UserMenu says who is logged in, and logs out.
export function UserMenu({ leave, help }: Choices) {
  const me = useMe()
  const go = useNavigate()
  const [isOpen, setOpen] = useState(false)
  const name = me?.displayName || me?.user || me?.name || 'Menu'
  const role = roleOf(me)
  const scoped = (me?.grants ?? []).filter((g) => g.pool).map((g) => `${g.role} in ${g.pool}`)
  return (
    <Dropdown
      isOpen={isOpen}
      onOpenChange={setOpen}
      onSelect={() => setOpen(false)}
      popperProps={{ position: 'right' }}
      toggle={(ref) => (
        <MenuToggle
          ref={ref}
          variant="plainText"
          onClick={() => setOpen(!isOpen)}
          isExpanded={isOpen}
          icon={<UserIcon />}
          aria-label={`User menu of ${name}`}
        >
          <span className="wide-only">{name}</span>
        </MenuToggle>
      )}
    >
      <DropdownGroup label={[name, role && `role ${role}`, ...scoped.slice(0, 3)].filter(Boolean).join(' · ')}>
        <DropdownList>
          <DropdownItem key="account" onClick={() => go('/settings?tab=account')}>
            Account
          </DropdownItem>
          <DropdownItem key="keys" onClick={help}>
            Keys
          </DropdownItem>
          <DropdownItem key="setup" onClick={() => go('/setup')}>
            Set up
          </DropdownItem>
          <Divider component="li" />
          <DropdownItem key="leave" onClick={leave}>
            Log out
          </DropdownItem>
        </DropdownList>
      </DropdownGroup>
    </Dropdown>
  )
}
