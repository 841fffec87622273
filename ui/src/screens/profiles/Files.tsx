import { Button, FormGroup, List, ListItem } from '@patternfly/react-core'
import { useRef, useState } from 'react'
import { bytesOf } from '../../parts/bytes'

// Files are local files that a Butane document names: base64 by their names in the folder of the document.
export type Files = Record<string, string>

const maxFiles = 64
const maxBytes = 1 << 20

// nameOf is the name of a chosen file as a document says it: a folder that was chosen is the folder of the document.
export const nameOf = (f: Pick<File, 'name' | 'webkitRelativePath'>): string =>
  f.webkitRelativePath ? f.webkitRelativePath.split('/').slice(1).join('/') : f.name

// besides sends files with the document of a profile.
export function besides<T extends { document?: { format: string } }>(body: T, files: Files): T {
  if (body.document?.format !== 'butane' || Object.keys(files).length === 0) return body
  return { ...body, document: { ...body.document, files } }
}

async function base64(f: File): Promise<string> {
  let text = ''
  for (const b of new Uint8Array(await f.arrayBuffer())) text += String.fromCharCode(b)
  return btoa(text)
}

// sizeOf is how many bytes a base64 text stands for.
export const sizeOf = (text: string): number =>
  (text.length / 4) * 3 - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0)

// Beside takes local files; the server makes them part of the document when it is saved.
export function Beside({ files, set }: { files: Files; set: (f: Files) => void }) {
  const input = useRef<HTMLInputElement>(null)
  const [not, setNot] = useState('')
  const names = Object.keys(files).toSorted()
  const take = async (list: FileList | null) => {
    const chosen = [...(list ?? [])]
    const size = chosen.reduce((n, f) => n + f.size, 0) + names.reduce((n, f) => n + sizeOf(files[f] ?? ''), 0)
    if (chosen.length + names.length > maxFiles) return setNot(`at most ${maxFiles} files go with a document`)
    if (size > maxBytes)
      return setNot(`the files have ${bytesOf(size)}, and at most ${bytesOf(maxBytes)} go with a document`)
    setNot('')
    const more = await Promise.all(chosen.map(async (f): Promise<[string, string]> => [nameOf(f), await base64(f)]))
    set({ ...files, ...Object.fromEntries(more) })
  }
  return (
    <FormGroup label="Local files that it names" fieldId="profile-document-files">
      <input
        ref={input}
        id="profile-document-files"
        type="file"
        multiple
        hidden
        onChange={(e) => void take(e.target.files)}
      />
      <Button variant="secondary" onClick={() => input.current?.click()}>
        Choose files
      </Button>
      {not && <p>Not taken: {not}.</p>}
      {names.length > 0 && (
        <List isPlain aria-label="Files that go with the document">
          {names.map((n) => (
            <ListItem key={n}>
              {n} ({bytesOf(sizeOf(files[n] ?? ''))}){' '}
              <Button
                variant="link"
                isInline
                aria-label={`Leave ${n} out`}
                onClick={() => set(Object.fromEntries(Object.entries(files).filter(([k]) => k !== n)))}
              >
                Remove
              </Button>
            </ListItem>
          ))}
        </List>
      )}
      <p>
        Choose the files that the document names with contents: {'{local: NAME}'} or contents_local: NAME. When you
        save, Slipway puts them into the document.
      </p>
    </FormGroup>
  )
}
