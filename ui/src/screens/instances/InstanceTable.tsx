import { useState } from 'react'
import { Act } from '../../parts/Act'
import { Ask, dryOf } from '../../parts/Ask'
import { Rows } from '../../parts/Rows'
import { Tag } from '../../parts/State'
import { When } from '../../parts/When'
import { cutOff, deleteNot, drainNot, type Instance, placesOf, signOf } from './words'

type Colour = Parameters<typeof Tag>[0]['color']
type Verb = 'drain' | 'undrain' | 'delete'

const looks: Record<string, [Colour, string]> = {
  alive: ['green', '●'],
  silent: ['red', '✕'],
  stopped: ['grey', '○'],
  unknown: ['orange', '◔'],
}

// InstanceTable lists instances. Why says why the user may change none.
export function InstanceTable({ instances: all, why }: { instances: Instance[]; why: string | undefined }) {
  const [asked, setAsked] = useState<[Verb, Instance]>()
  const verb = (i: Instance, verb: Verb, text: string, not?: string) => (
    <Act text={text} of={i.name} not={why ?? not} isDanger={verb === 'delete'} act={() => setAsked([verb, i])} />
  )
  return (
    <>
      <Rows
        label="Instances"
        rows={all}
        keyOf={(i) => i.id}
        columns={[
          ['Instance', (i) => <Name of={i} />],
          ['Life', (i) => <Life of={i} />, { modifier: 'nowrap' }],
          ['Last sign of life', signOf, { modifier: 'nowrap' }],
          ['Version', (i) => i.version],
          ['Addresses', placesOf],
          ['Started', (i) => <When at={i.startedAt} />],
          [
            'Actions',
            (i) => (
              <span style={{ display: 'inline-flex', gap: '1rem' }}>
                {i.isDrained ? verb(i, 'undrain', 'Undrain') : verb(i, 'drain', 'Drain', drainNot(i, all))}
                {verb(i, 'delete', 'Delete', deleteNot(i))}
              </span>
            ),
          ],
        ]}
      />
      {asked && <Asked verb={asked[0]} instance={asked[1]} close={() => setAsked(undefined)} />}
    </>
  )
}

function Name({ of: i }: { of: Instance }) {
  return (
    <>
      {i.name} {i.isLeader && <Tag color="blue">has the engine</Tag>}{' '}
      {i.isDrained && (
        <Tag color="orange">
          drained{' '}
          {i.drainedAt && (
            <>
              {' '}
              <When at={i.drainedAt} />
            </>
          )}
        </Tag>
      )}
      {cutOff(i) && (
        <Tag color="red">
          cut off from the engine <When at={i.cutOffAt} />
        </Tag>
      )}
      {cutOff(i) && <div>{i.cutOff}</div>}
    </>
  )
}

function Life({ of: { life } }: { of: Instance }) {
  const [colour, glyph] = looks[life] ?? ['grey', '·']
  return (
    <Tag color={colour}>
      <span aria-hidden>{glyph}</span> {life}
    </Tag>
  )
}

function Asked({ verb, instance: i, close }: { verb: Verb; instance: Instance; close: () => void }) {
  const path = `/instances/${encodeURIComponent(i.name)}`
  const cli = `slipway instance ${verb} ${i.name}`
  switch (verb) {
    case 'drain':
      return (
        <Ask
          title={`Drain instance ${i.name}?`}
          verb="Drain"
          call={{ method: 'POST', path: `${path}/drain` }}
          cli={cli}
          close={close}
        >
          <p>
            Other instances take its duties, and it gets none until you undrain it.
            {i.isLeader && ' It has the engine: this page waits for some seconds, until another instance has it.'}
          </p>
        </Ask>
      )
    case 'undrain':
      return (
        <Ask
          title={`Undrain instance ${i.name}?`}
          verb="Undrain"
          call={{ method: 'POST', path: `${path}/undrain` }}
          cli={cli}
          close={close}
        >
          <p>It may hold duties again. It takes those that no instance has.</p>
        </Ask>
      )
    case 'delete': {
      const call = { method: 'DELETE' as const, path }
      return (
        <Ask
          title={`Delete instance ${i.name}?`}
          verb="Delete"
          call={call}
          cli={cli}
          foresees={dryOf(call)}
          warns="Only the row in the database goes. If its server starts again, it is an instance again."
          close={close}
        />
      )
    }
  }
}
