import {
  Alert,
  Button,
  ClipboardCopy,
  FileUpload,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
} from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { send } from '../../api/act'
import { mayNot, useMe } from '../../api/me'
import { Ask } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { EditForm } from '../../parts/Fields'
import { When } from '../../parts/When'

interface State {
  isOn: boolean
  from?: 'files' | 'uploaded' | 'site'
  subject?: string
  issuer?: string
  names?: string[]
  notBefore?: string
  notAfter?: string
  fingerprint?: string
  ca?: string
  refused?: string
}

const sources = {
  files: 'the files that the settings name',
  uploaded: 'uploaded here',
  site: "signed by this site's own authority",
}

const warnDays = 30

// TLS shows the certificate with which this page is served, and takes another.
export function TLS() {
  const state = useQuery({
    queryKey: ['tls'],
    queryFn: () => send<State>({ method: 'GET', path: '/tls' }),
  })
  return <Loaded query={state}>{(s) => (s.isOn ? <On state={s} /> : <Off />)}</Loaded>
}

function Off() {
  return (
    <>
      <Alert variant="info" isInline title="This page has no TLS">
        <p>
          That is safe on loopback, because only programs on this computer can connect there. On any other address, the
          server uses TLS. Until you upload a certificate, it makes one with its own authority.
        </p>
      </Alert>
      <Command cli="slipway serve --admin-listen 0.0.0.0:8067" />
    </>
  )
}

function On({ state }: { state: State }) {
  const me = useMe()
  const [asked, setAsked] = useState<'set' | 'drop' | 'next' | 'finish'>()
  const not = mayNot(me, 'admin', '')
  const isGiven = state.from === 'files'
  const notSet = not ?? (isGiven ? 'the configuration file names the certificate files: replace them there' : undefined)
  const notDrop = not ?? (state.from === 'uploaded' ? undefined : 'no certificate was uploaded')
  return (
    <>
      <Warnings state={state} />
      <Facts
        rows={[
          ['Certificate', state.from && sources[state.from]],
          [state.from === 'site' ? 'Authority' : 'Subject', state.subject],
          ['Issuer', state.from === 'site' ? '' : state.issuer],
          ['Names', state.names?.join(', ')],
          ['Good since', <When key="since" at={state.notBefore} />],
          ['Good until', <When key="until" at={state.notAfter} />],
          [
            'SHA-256',
            state.fingerprint && (
              <ClipboardCopy key="sum" isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="SHA-256">
                {state.fingerprint}
              </ClipboardCopy>
            ),
          ],
        ]}
      />
      {state.from === 'site' && state.ca && <Authority ca={state.ca} />}
      <p style={{ marginBlock: '1rem', display: 'flex', gap: '0.5rem', flexWrap: 'wrap' }}>
        <Button isAriaDisabled={notSet !== undefined} onClick={() => setAsked('set')}>
          Upload a certificate
        </Button>
        <Button variant="secondary" isAriaDisabled={notDrop !== undefined} onClick={() => setAsked('drop')}>
          Remove the uploaded certificate
        </Button>
      </p>
      {notSet && <p>Upload: {notSet}.</p>}
      {notDrop && notDrop !== notSet && <p>Take away: {notDrop}.</p>}
      {state.from === 'site' && (
        <>
          <p>
            You replace this site's authority in two steps. Make the next one, and let clients trust both. Then put it
            in force.
          </p>
          <p style={{ marginBlock: '1rem', display: 'flex', gap: '0.5rem', flexWrap: 'wrap' }}>
            <Button variant="secondary" isAriaDisabled={not !== undefined} onClick={() => !not && setAsked('next')}>
              Make the next authority
            </Button>
            <Button variant="secondary" isAriaDisabled={not !== undefined} onClick={() => !not && setAsked('finish')}>
              Put the next authority in force
            </Button>
          </p>
        </>
      )}
      <Command cli="slipway tls show" call={{ method: 'GET', path: '/tls' }} />
      {asked === 'set' && <Upload close={() => setAsked(undefined)} />}
      {asked === 'next' && (
        <Ask
          title="Make the next authority?"
          verb="Make"
          call={{ method: 'POST', path: '/tls/authority', body: { door: 'admin', isFinish: false } }}
          cli="slipway tls rotate"
          close={() => setAsked(undefined)}
        >
          <p>Nothing changes for connections yet. Download the certificates again: clients have to trust both.</p>
        </Ask>
      )}
      {asked === 'finish' && (
        <Ask
          title="Put the next authority in force?"
          verb="Put in force"
          call={{ method: 'POST', path: '/tls/authority', body: { door: 'admin', isFinish: true } }}
          cli="slipway tls rotate --finish"
          warns="Slipway deletes the present authority. Clients that do not trust the next one cannot connect any more."
          close={() => setAsked(undefined)}
        />
      )}
      {asked === 'drop' && (
        <Ask
          title="Remove the uploaded certificate?"
          verb="Remove"
          call={{ method: 'DELETE', path: '/tls' }}
          cli="slipway tls drop"
          warns="Slipway deletes the certificate and its key, and signs with this site's own authority again. Browsers warn if they do not trust it, and command lines need its --ca-file."
          close={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

function Warnings({ state }: { state: State }) {
  const days = state.notAfter ? Math.floor((Date.parse(state.notAfter) - Date.now()) / 86_400_000) : undefined
  return (
    <>
      {state.refused && (
        <Alert
          variant="danger"
          isInline
          title="The newest certificate is not in force"
          style={{ marginBlockEnd: '1rem' }}
        >
          {state.refused}
        </Alert>
      )}
      {state.from !== 'site' && days !== undefined && days < warnDays && (
        <Alert
          variant="warning"
          isInline
          title={days < 0 ? 'The certificate has expired' : `The certificate ends in ${days} days`}
          style={{ marginBlockEnd: '1rem' }}
        >
          Slipway does not renew it.
        </Alert>
      )}
    </>
  )
}

function Authority({ ca }: { ca: string }) {
  return (
    <div style={{ marginBlock: '1rem' }}>
      <p>
        A browser that trusts this site's authority trusts this page. Give its certificate to your browser or system,
        and to command lines with <code>--ca-file</code>; compare the fingerprint with what the server printed at its
        start.
      </p>
      <Button
        variant="link"
        isInline
        component="a"
        href={`data:application/x-pem-file,${encodeURIComponent(ca)}`}
        download="slipway-ca.crt"
      >
        Download the authority's certificate
      </Button>
      <Command cli="slipway tls show --ca > slipway-ca.crt" />
    </div>
  )
}

const pemMax = 65_536

// Upload takes the two files. The key goes to the server and is never shown again.
function Upload({ close }: { close: () => void }) {
  const [cert, setCert] = useState('')
  const [key, setKey] = useState('')
  const wrong = certFault(cert) ?? keyFault(key)
  return (
    <EditForm
      title="Upload a certificate for this page"
      verb="Upload"
      ready={wrong === undefined}
      call={{ method: 'PUT', path: '/tls', body: { certificate: cert, key } }}
      shown={{ certificate: '…', key: '…' }}
      cli="slipway tls set --cert FILE --key FILE"
      close={close}
    >
      <Pem id="cert" label="Certificate" text={cert} set={setCert} fault={cert ? certFault(cert) : undefined}>
        PEM, followed by the intermediate certificates
      </Pem>
      <Pem id="key" label="Key" text={key} set={setKey} fault={key ? keyFault(key) : undefined} isSecret>
        PEM, without a passphrase. The server stores it next to the database and never shows it
      </Pem>
      <p>It is in force for the next connection.</p>
    </EditForm>
  )
}

function certFault(text: string): string | undefined {
  if (text.length > pemMax) return 'It is over 64 KiB long.'
  if (/PRIVATE KEY-----/.test(text)) return 'This holds a private key; it belongs in the other field.'
  return text.includes('-----BEGIN CERTIFICATE-----') ? undefined : 'This is not a certificate in PEM.'
}

function keyFault(text: string): string | undefined {
  if (text.length > pemMax) return 'It is over 64 KiB long.'
  if (text.includes('BEGIN ENCRYPTED PRIVATE KEY')) return 'The key has a passphrase; take it off first.'
  return /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) ? undefined : 'This is not a key in PEM.'
}

interface PemField {
  id: string
  label: string
  text: string
  set: (text: string) => void
  fault: string | undefined
  isSecret?: boolean // it is taken from a file, and not shown
  children: string
}

function Pem({ id, label, text, set, fault, isSecret = false, children }: PemField) {
  const [name, setName] = useState('')
  return (
    <FormGroup label={label} fieldId={id} isRequired>
      <FileUpload
        id={id}
        type="text"
        value={text}
        filename={name}
        filenamePlaceholder={isSecret ? 'Drop a file' : 'Drop a file, or paste it below'}
        browseButtonText="Choose"
        allowEditingUploadedText
        hideDefaultPreview={isSecret}
        validated={fault ? 'error' : 'default'}
        onFileInputChange={(_, file) => setName(file.name)}
        onDataChange={(_, t) => set(t)}
        onTextChange={(_, t) => set(t)}
        onClearClick={() => {
          setName('')
          set('')
        }}
      />
      <FormHelperText>
        <HelperText>
          <HelperTextItem variant={fault ? 'error' : 'default'}>{fault ?? children}</HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  )
}
