import {
  Alert,
  Button,
  ExpandableSection,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Progress,
  TextInput,
} from '@patternfly/react-core'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { send } from '../../api/act'
import { useList } from '../../api/queries'
import type { HostRow } from '../../api/rows'
import { Command } from '../../parts/Command'
import { Failure } from '../../parts/Failure'
import { ChoiceField, same, TextField } from '../../parts/Fields'
import {
  type BulkItem,
  type BulkResult,
  byReason,
  commandOf,
  foreseen,
  type Given,
  inChunks,
  labelsOf,
  type Verb,
} from './verbs'

// tryAtOnce and doAtOnce are how many hosts go with one request: small enough to see it move.
const tryAtOnce = 250
const doAtOnce = 50

type Run =
  | { is: 'trying' | 'doing'; n: number; of: number; items: BulkItem[] }
  | { is: 'tried' | 'done'; items: BulkItem[]; of: number }
  | { is: 'failed'; error: unknown }

interface Asked {
  verb: Verb
  hosts: HostRow[]
  selector?: string | undefined
  close: () => void
}

// BulkAsk asks before something is done to many hosts: the server says first what will happen to which, and why not to the others;
// then it is done part by part, and what became of each host stands there until the window is closed.
export function BulkAsk({ verb, hosts, selector, close }: Asked) {
  const [given, give] = useState<Given>({})
  const [run, setRun] = useState<Run>({ is: 'trying', n: 0, of: hosts.length, items: [] })
  const [typed, type] = useState('')
  const [ids, setIDs] = useState(() => hosts.map((h) => h.id))
  const turn = useRef(0) // of the newest run: older ones end
  const fault = verb.key === 'labels' ? labelsOf(given.labels ?? '').fault : undefined
  const isEmpty = ['labels', 'place'].includes(verb.key) && !Object.values(given).some(Boolean)
  const body = useMemo(() => verb.body(given), [verb, given])

  const start = useCallback(
    async (which: string[], isTrial: boolean) => {
      const mine = ++turn.current
      const is = isTrial ? 'trying' : 'doing'
      setRun({ is, n: 0, of: which.length, items: [] })
      try {
        const items = await inChunks(
          which,
          isTrial ? tryAtOnce : doAtOnce,
          (part) =>
            send<BulkResult>({
              method: 'POST',
              path: `/hosts/bulk${isTrial ? '?dryRun=true' : ''}`,
              body: { ...body, hosts: part },
            }),
          (n, items) => turn.current === mine && setRun({ is, n, of: which.length, items }),
          () => turn.current !== mine,
        )
        if (turn.current === mine) setRun({ is: isTrial ? 'tried' : 'done', items, of: which.length })
      } catch (error) {
        if (turn.current === mine) setRun({ is: 'failed', error })
      }
    },
    [body],
  )
  // What is asked for anew is tried anew, once nobody types for a moment.
  useEffect(() => {
    if (fault || isEmpty) return
    const timer = setTimeout(() => void start(ids, true), 300)
    return () => clearTimeout(timer)
  }, [start, ids, fault, isEmpty])
  useEffect(() => () => void turn.current++, [])

  const acts = 'items' in run ? run.items.filter((i) => i.acts).length : 0
  const names = useMemo(() => {
    const of = new Map(hosts.map((h) => [h.id, h.name]))
    return ids.map((id) => of.get(id) ?? id)
  }, [hosts, ids])
  const isTried = run.is === 'tried' && !fault && !isEmpty
  const isOver = run.is === 'done'
  const skipped = isOver ? run.items.filter((i) => !i.acts) : []
  const isBusy = run.is === 'doing'
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="bulk-title">
      <ModalHeader
        labelId="bulk-title"
        title={`${verb.title}: ${ids.length} ${ids.length === 1 ? 'host' : 'hosts'}`}
        {...(verb.warns && { titleIconVariant: 'warning' as const })}
      />
      <ModalBody>
        {verb.warns && <p>{verb.warns}</p>}
        {verb.fields && !isOver && !isBusy && <Fields verb={verb} given={given} give={give} fault={fault} />}
        {run.is === 'failed' && <Failure error={run.error} again={() => void start(ids, true)} />}
        {(run.is === 'trying' || run.is === 'doing') && !isEmpty && !fault && (
          <Progress
            aria-label={run.is === 'trying' ? 'Asking the server' : 'Progress'}
            title={run.is === 'trying' ? 'The server checks each host …' : `${run.n} of ${run.of} hosts`}
            value={run.n}
            max={run.of}
          />
        )}
        {isTried && <Outcome items={run.items} words={['Acts on', 'skips']} will={foreseen(run.items)} />}
        {isOver && <Outcome items={run.items} words={['Done on', 'skipped']} isDone />}
        {isTried && verb.warns && acts > 0 && (
          <Form onSubmit={(e) => e.preventDefault()}>
            <FormGroup label={`Type ${acts} to go on`} fieldId="bulk-typed">
              <TextInput
                id="bulk-typed"
                value={typed}
                onChange={(_, v) => type(v)}
                autoComplete="off"
                inputMode="numeric"
              />
            </FormGroup>
          </Form>
        )}
        <Command
          cli={commandOf(verb, given, names, selector)}
          call={{
            method: 'POST',
            path: '/hosts/bulk',
            body: { ...body, ...(selector ? { selector } : { hosts: names }) },
          }}
        />
      </ModalBody>
      <ModalFooter>
        {!isOver && (
          <Button
            variant={verb.warns ? 'danger' : 'primary'}
            isLoading={isBusy}
            isDisabled={!isTried || acts === 0 || (Boolean(verb.warns) && typed.trim() !== String(acts))}
            onClick={() => void start(idsOf(run), false)}
          >
            {verb.title} {isTried && acts > 0 && `(${acts})`}
          </Button>
        )}
        {isOver && skipped.length > 0 && (
          <Button
            variant="secondary"
            onClick={() => {
              type('')
              setIDs(skipped.map((i) => i.id || i.host))
            }}
          >
            Try these {skipped.length} hosts again
          </Button>
        )}
        {isBusy && (
          <Button variant="secondary" onClick={() => stop(turn, run, setRun)}>
            Stop
          </Button>
        )}
        <Button variant={isOver ? 'primary' : 'link'} onClick={close}>
          {isOver ? 'Close' : 'Cancel'}
        </Button>
      </ModalFooter>
    </Modal>
  )
}

// idsOf are the hosts that the trial acts on: what was promised to be skipped is left alone.
const idsOf = (run: Run): string[] => ('items' in run ? run.items.filter((i) => i.acts).map((i) => i.id ?? i.host) : [])

// stop keeps what was done so far; the request under way still ends.
function stop(turn: { current: number }, run: Run, set: (r: Run) => void) {
  turn.current++
  if ('items' in run) set({ is: 'done', items: run.items, of: run.items.length })
}

function Outcome({
  items,
  words,
  will = [],
  isDone,
}: {
  items: readonly BulkItem[]
  words: [string, string]
  will?: string[] // what will happen, in sentences
  isDone?: boolean
}) {
  const acts = items.filter((i) => i.acts)
  const skips = items.length - acts.length
  const one = will.length === 1 ? will[0] : `${words[0]} ${acts.length}`
  return (
    <>
      <Alert
        isInline
        isLiveRegion
        variant={skips === 0 ? (isDone ? 'success' : 'info') : 'warning'}
        title={`${one}${skips > 0 ? `${will.length === 1 ? '; ' : ', '}${words[1]} ${skips}` : ''}`}
      >
        {will.length > 1 && (
          <ul>
            {will.map((w) => (
              <li key={w}>{w}</li>
            ))}
          </ul>
        )}
        {byReason(items).map(([reason, some]) => (
          <ExpandableSection key={reason} toggleText={`${some.length} because: ${reason}`}>
            {some[0]?.hint && <p>{some[0].hint}</p>}
            <p className="hosts-names">{some.map((i) => i.host).join(' ')}</p>
          </ExpandableSection>
        ))}
      </Alert>
      {acts.length > 0 && (
        <ExpandableSection
          toggleText={`The ${acts.length} hosts ${isDone ? 'with the action done' : 'that get the action'}`}
        >
          <p className="hosts-names">{acts.map((i) => i.host).join(' ')}</p>
        </ExpandableSection>
      )}
    </>
  )
}

function Fields({
  verb,
  given,
  give,
  fault,
}: {
  verb: Verb
  given: Given
  give: (g: Given) => void
  fault?: string | undefined
}) {
  const profiles = useList('profiles')
  const names = (profiles.data ?? []).map((p) => p.name)
  return (
    <Form onSubmit={(e) => e.preventDefault()}>
      {verb.fields?.map((f) => {
        const choices: [string, string][] | undefined =
          f.from === 'profiles' ? [['', '(none)'], ...same(names)] : f.choices && same(f.choices)
        const p = {
          label: f.label,
          value: given[f.name] ?? f.choices?.[0] ?? '',
          set: (v: string) => give({ ...given, [f.name]: v }),
          said: fault,
          help: f.help,
        }
        return choices ? <ChoiceField key={f.name} {...p} choices={choices} /> : <TextField key={f.name} {...p} />
      })}
    </Form>
  )
}
