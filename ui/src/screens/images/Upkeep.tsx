import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader, Spinner, Title } from '@patternfly/react-core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type Call, send, useAct } from '../../api/act'
import type { Schemas } from '../../api/client'
import { useList } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Failure } from '../../parts/Failure'

type Pruned = Schemas['Pruned']

// Verify reads every file again. That takes as long as the disk needs.
export function Verify({ close }: { close: () => void }) {
  const call: Call = { method: 'POST', path: '/artefacts/verify' }
  const verify = useMutation({ mutationFn: () => send<{ items: Schemas['Fault'][] }>(call) })
  const artefacts = useList('artefacts')
  const bytes = (artefacts.data ?? []).reduce((sum, a) => sum + a.sizeBytes, 0)
  const faults = verify.data?.items
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="verify-title">
      <ModalHeader labelId="verify-title" title="Verify the files of all images" />
      <ModalBody tabIndex={0}>
        <p>
          Reads {artefacts.data?.length ?? 0} files, {bytesOf(bytes)}, and compares their SHA-256. Nothing is changed.
        </p>
        {verify.isPending && (
          <p>
            <Spinner size="md" aria-label="Verifying" /> reading…
          </p>
        )}
        {faults?.length === 0 && <Alert variant="success" isInline title="All files are as they were imported." />}
        {faults?.map((f) => (
          <Alert
            key={f.digest}
            variant="danger"
            isInline
            title={`${f.problem}: ${(f.images ?? []).join(', ') || 'used by no image'}`}
          >
            <p className="digest">{f.digest}</p>
            <p>{f.hint}</p>
          </Alert>
        ))}
        {verify.error && <Failure error={verify.error} />}
        <Command cli="slipway image verify" call={call} />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={verify.isPending} isLoading={verify.isPending} onClick={() => verify.mutate()}>
          {faults ? 'Verify again' : 'Verify'}
        </Button>
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  )
}

// Prune says what would go before it goes.
export function Prune({ close }: { close: () => void }) {
  const queries = useQueryClient()
  const call: Call = { method: 'POST', path: '/artefacts/prune' }
  const preview = useQuery({
    queryKey: ['artefacts', 'prune'],
    queryFn: () => send<Pruned>({ ...call, path: `${call.path}?dryRun=true` }),
    staleTime: 0,
  })
  const act = useAct<Pruned>(() => void queries.invalidateQueries({ queryKey: ['artefacts'] }))
  const p = preview.data
  const isIdle = !p || (p.removed.length === 0 && p.freedBytes === 0)
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="prune-title">
      <ModalHeader labelId="prune-title" title="Remove files that no image uses" />
      <ModalBody tabIndex={0}>
        {preview.isPending && <Spinner aria-label="Loading" />}
        {preview.error && <Failure error={preview.error} again={() => void preview.refetch()} />}
        {act.data && (
          <Alert
            variant="success"
            isInline
            title={`${act.data.removed.length} files removed, ${bytesOf(act.data.freedBytes)} freed.`}
          />
        )}
        {p && !act.data && (
          <>
            <p>
              {isIdle
                ? 'Nothing would be removed: every file is in use, or was in use less than an hour ago.'
                : `${p.removed.length} ${p.removed.length === 1 ? 'file' : 'files'} would be removed, ${bytesOf(p.freedBytes)} freed.`}
            </p>
            <Digests title="Would be removed" digests={p.removed} />
            <Digests title="Kept, because a machine may still be booting them" digests={p.kept ?? []} />
          </>
        )}
        {act.error && <Failure error={act.error} />}
        <Command cli="slipway image prune" call={call} />
      </ModalBody>
      <ModalFooter>
        {!act.data && (
          <Button
            variant="danger"
            isDisabled={isIdle || act.isPending}
            isLoading={act.isPending}
            onClick={() => act.mutate(call)}
          >
            Remove
          </Button>
        )}
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  )
}

function Digests({ title, digests }: { title: string; digests: string[] }) {
  const artefacts = useList('artefacts')
  const known = new Map(artefacts.data?.map((a) => [a.digest, a]))
  if (digests.length === 0) return null
  return (
    <>
      <Title headingLevel="h3" size="md">
        {title}
      </Title>
      <ul>
        {digests.slice(0, 100).map((d) => (
          <li key={d} className="digest">
            {d.slice(0, 23)}… {known.get(d)?.source} {known.get(d) && bytesOf(known.get(d)?.sizeBytes ?? 0)}
          </li>
        ))}
      </ul>
      {digests.length > 100 && <p>and {digests.length - 100} more</p>}
    </>
  )
}
