import {
  Button,
  Dropdown,
  DropdownItem,
  DropdownList,
  MenuToggle,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from '@patternfly/react-core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Host } from '../../api/client'
import { Failure } from '../../parts/Failure'

interface Verb {
  verb: string
  title: string
  body: Record<string, unknown>
  command: string
  not?: string // why it cannot be done now
  warns?: string // what is lost by it
}

// verbs are what can be done with a host now; what cannot says why.
export function verbs(h: Pick<Host, 'name' | 'state' | 'isProtected' | 'inMaintenance' | 'machine'>): Verb[] {
  const list: Verb[] = []
  const cli = (text: string) => `slipway host ${text}`
  list.push({
    verb: 'accept',
    title: 'Accept',
    body: {},
    command: cli(`accept ${h.name}`),
    ...(h.state !== 'discovered' && { not: 'it is accepted already' }),
  })
  list.push({
    verb: 'inspect',
    title: 'Inspect',
    body: {},
    command: cli(`inspect ${h.name}`),
    ...(h.state !== 'available' && h.state !== 'failed' && { not: `it is ${h.state}` }),
  })
  for (const [action, title] of [
    ['on', 'Switch on'],
    ['off', 'Switch off'],
    ['cycle', 'Power cycle'],
  ] as const) {
    list.push({
      verb: 'power',
      title,
      body: { action },
      command: cli(`power ${h.name} ${action}`),
      ...(action !== 'on' && { warns: 'What runs on it stops at once.' }),
    })
  }
  list.push({
    verb: 'maintain',
    title: h.inMaintenance ? 'End maintenance' : 'Begin maintenance',
    body: { on: !h.inMaintenance },
    command: cli(`maintain ${h.name}${h.inMaintenance ? ' --off' : ''}`),
  })
  list.push({
    verb: 'protect',
    title: h.isProtected ? 'Lift protection' : 'Protect',
    body: { on: !h.isProtected },
    command: cli(`protect ${h.name}${h.isProtected ? ' --off' : ''}`),
  })
  list.push({
    verb: 'clean',
    title: 'Wipe',
    body: {},
    command: cli(`clean ${h.name}`),
    warns: 'Everything on its disks is lost.',
    ...(h.isProtected ? { not: 'it is protected' } : h.machine ? { not: `machine ${h.machine} has it` } : {}),
  })
  return list
}

export function Actions({ host }: { host: Host }) {
  const [isOpen, setOpen] = useState(false)
  const [asked, setAsked] = useState<Verb>()
  const queries = useQueryClient()
  const act = useMutation({
    mutationFn: (v: Verb) =>
      (api.POST as (p: string, o: object) => Promise<unknown>)(
        `/api/v1/hosts/${encodeURIComponent(host.name)}/${v.verb}`,
        { body: v.body },
      ),
    onSuccess: () => {
      setAsked(undefined)
      void queries.invalidateQueries()
    },
  })
  return (
    <>
      <Dropdown
        isOpen={isOpen}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        toggle={(ref) => (
          <MenuToggle ref={ref} onClick={() => setOpen(!isOpen)} isExpanded={isOpen} variant="primary">
            Actions
          </MenuToggle>
        )}
      >
        <DropdownList>
          {verbs(host).map((v) => (
            <DropdownItem
              key={v.title}
              isAriaDisabled={v.not !== undefined}
              description={v.not}
              onClick={() => v.not === undefined && setAsked(v)}
            >
              {v.title}
            </DropdownItem>
          ))}
        </DropdownList>
      </Dropdown>
      {asked && (
        <Modal isOpen variant="small" onClose={() => setAsked(undefined)} aria-labelledby="ask">
          <ModalHeader
            labelId="ask"
            title={`${asked.title}: ${host.name}?`}
            {...(asked.warns && { titleIconVariant: 'warning' as const })}
          />
          <ModalBody>
            {asked.warns && <p>{asked.warns}</p>}
            <p>
              The same by command: <code>{asked.command}</code>
            </p>
            {act.error && <Failure error={act.error} />}
          </ModalBody>
          <ModalFooter>
            <Button
              variant={asked.warns ? 'danger' : 'primary'}
              isLoading={act.isPending}
              onClick={() => act.mutate(asked)}
            >
              {asked.title}
            </Button>
            <Button variant="link" onClick={() => setAsked(undefined)}>
              Cancel
            </Button>
          </ModalFooter>
        </Modal>
      )}
    </>
  )
}
