import {
  Button,
  Checkbox,
  FileUpload,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { send } from '../../api/act'
import type { Schemas } from '../../api/client'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { Failure } from '../../parts/Failure'
import { ChoiceField, Refused, TextField } from '../../parts/Fields'
import { wordsOf } from '../../parts/written'
import { Results } from './Results'

type Check = Schemas['ClusterCheck']

const sizeMax = 1 << 20

// secretOf is the secret that holds a cluster's kubeconfig, named as the command line names it: detaching removes it.
const secretOf = (cluster: string) => `cluster-${cluster}`.slice(0, 63).replace(/-+$/, '')

// AttachForm looks a cluster over before it attaches it. The kubeconfig is kept sealed, and never shown again.
export function AttachForm({ close }: { close: () => void }) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [text, setText] = useState('')
  const [file, setFile] = useState('')
  const [mode, setMode] = useState('')
  const [namespaces, setNamespaces] = useState('')
  const [isAnyway, setAnyway] = useState(false)
  const [check, setCheck] = useState<Check>()
  const [work, setWork] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const spaces = wordsOf(namespaces)
  const how = { name, ...(mode && { modes: [mode] }), ...(spaces.length > 0 && { namespaces: spaces }) }
  const put = {
    method: 'PUT' as const,
    path: `/clusters/${encodeURIComponent(name)}`,
    body: { ...how, kubeconfig: secretOf(name) },
  }
  const isReady = name !== '' && text.trim() !== ''
  const mayAttach = isReady && (check?.isGood || isAnyway)
  const again = () => setCheck(undefined)
  const run = async (doing: () => Promise<void>) => {
    setWork({ isBusy: true })
    try {
      await doing()
      setWork({ isBusy: false })
    } catch (error) {
      setWork({ isBusy: false, error })
    }
  }
  const look = (e: FormEvent) => {
    e.preventDefault()
    if (!isReady || work.isBusy) return
    void run(async () => {
      setCheck(await send<Check>({ method: 'POST', path: '/clusters/check', body: { ...how, kubeconfig: text } }))
    })
  }
  const attach = () =>
    void run(async () => {
      await send({
        method: 'PUT',
        path: `/secrets/${encodeURIComponent(secretOf(name))}`,
        body: { value: text, about: `kubeconfig of cluster ${name}` },
      })
      await send(put)
      await queries.invalidateQueries()
      close()
    })
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="attach-title">
      <ModalHeader title="Attach a cluster" labelId="attach-title" />
      <ModalBody>
        <Refused error={work.error}>
          <Form id="attach-form" onSubmit={look}>
            <TextField
              label="Name"
              field="name"
              value={name}
              set={(v) => {
                setName(v)
                again()
              }}
              isRequired
              help="Its name in Slipway: small letters, digits and dashes"
            />
            <FormGroup label="Kubeconfig" fieldId="kubeconfig" isRequired>
              <FileUpload
                id="kubeconfig"
                type="text"
                value={text}
                filename={file}
                filenamePlaceholder="paste it below, or choose a file"
                browseButtonText="Choose"
                browseButtonAriaDescribedby="kubeconfig-help"
                onFileInputChange={(_, f) => setFile(f.name)}
                onDataChange={(_, v) => {
                  setText(v.slice(0, sizeMax))
                  again()
                }}
                onTextChange={(_, v) => {
                  setText(v.slice(0, sizeMax))
                  again()
                }}
                onClearClick={() => {
                  setText('')
                  setFile('')
                  again()
                }}
                aria-label="Kubeconfig"
                spellCheck={false}
              />
              <small id="kubeconfig-help">
                It must contain the certificates and tokens themselves, not file names. This command prints such a file:
                kubectl config view --raw --flatten --minify
              </small>
            </FormGroup>
            <ChoiceField
              label="Controllers"
              value={mode}
              set={(v) => {
                setMode(v)
                again()
              }}
              choices={[
                ['', 'all of them'],
                ['standalone', 'MetalMachine and the kinds around it only'],
                ['capi', 'Cluster API only'],
              ]}
            />
            <TextField
              label="Namespaces"
              value={namespaces}
              set={(v) => {
                setNamespaces(v)
                again()
              }}
              help="Only objects in these namespaces. Empty: in all"
            />
            {work.error !== undefined && <Failure error={work.error} />}
          </Form>
        </Refused>
        {check && (
          <Results
            isGood={check.isGood}
            results={check.results}
            good={`It can be attached; its version is ${check.kubernetes ?? 'unknown'}`}
          />
        )}
        {check && !check.isGood && (
          <Checkbox
            id="anyway"
            label="Attach it anyway: Slipway tries again until nothing is missing"
            isChecked={isAnyway}
            onChange={(_, on) => setAnyway(on)}
          />
        )}
        <Command
          cli={`slipway cluster attach --kubeconfig FILE --name ${shell(name || 'NAME')}${mode ? ` --${mode}` : ''}${spaces.map((n) => ` --namespace ${shell(n)}`).join('')}`}
          call={put}
        />
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form="attach-form"
          variant={check?.isGood ? 'secondary' : 'primary'}
          isDisabled={!isReady || work.isBusy}
          isLoading={work.isBusy && !check}
        >
          Check
        </Button>
        <Button
          variant={check?.isGood ? 'primary' : 'secondary'}
          isDisabled={!mayAttach || work.isBusy}
          onClick={attach}
        >
          Attach
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  )
}
