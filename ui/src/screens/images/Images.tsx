import { Button, Label, Tooltip } from '@patternfly/react-core'
import { Link, Route, Routes, useParams, useSearchParams } from 'react-router'
import type { Image } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { Agents } from './Agents'
import { isAgent } from './agent'
import { ImagePage } from './ImagePage'
import { ImportForm } from './ImportForm'
import { Imports } from './Imports'
import './images.css'
import { Rows } from '../../parts/Rows'
import { Prune, Verify } from './Upkeep'
import { kindOf, sizeOf } from './words'

// Images are its list and a page for each.
export function Images() {
  return (
    <Routes>
      <Route index element={<ImageList />} />
      <Route path=":name" element={<OfName />} />
    </Routes>
  )
}

function OfName() {
  const { name = '' } = useParams()
  return <ImagePage key={name} name={name} />
}

function ImageList() {
  const images = useList('images')
  const [params, setParams] = useSearchParams()
  const me = useMe()
  const not = mayNot(me, 'operator', '')
  const notPrune = mayNot(me, 'admin', '')
  const show = params.get('do')
  const go = (what: string) => {
    const next = new URLSearchParams(params)
    if (what) next.set('do', what)
    else next.delete('do')
    setParams(next)
  }
  const button = (what: string, label: string, variant: 'primary' | 'secondary', not?: string) => {
    const b = (
      <Button variant={variant} isAriaDisabled={not !== undefined} onClick={() => go(what)}>
        {label}
      </Button>
    )
    return not ? <Tooltip content={not}>{b}</Tooltip> : b
  }
  return (
    <Screen
      title="Images"
      about="Systems that hosts boot or install. Slipway keeps every file once, by its SHA-256."
      actions={
        <div className="import-head">
          {button('import', 'Import an image', 'primary', not)}
          {button('verify', 'Verify', 'secondary', not)}
          {button('prune', 'Prune', 'secondary', notPrune)}
        </div>
      }
    >
      <Imports />
      <Loaded query={images}>
        {(all) => (
          <>
            {all.filter((i) => !isAgent(i)).length === 0 ? (
              <Nothing title="There is no image yet">
                Import one by name and release, from an address, or from a file of this computer. Then make a profile of
                it.
              </Nothing>
            ) : (
              <ImageTable images={all.filter((i) => !isAgent(i))} />
            )}
            <Agents images={all.filter(isAgent)} />
          </>
        )}
      </Loaded>
      {show === 'import' && !not && <ImportForm close={() => go('')} />}
      {show === 'verify' && !not && <Verify close={() => go('')} />}
      {show === 'prune' && !notPrune && <Prune close={() => go('')} />}
    </Screen>
  )
}

function ImageTable({ images }: { images: Image[] }) {
  const artefacts = useList('artefacts')
  const profiles = useList('profiles')
  const machines = useList('machines')
  const ofImage = (name: string) => {
    const ps = (profiles.data ?? []).filter((p) => p.image === name).map((p) => p.name)
    const ms = (machines.data ?? []).filter((m) => ps.includes(m.profile ?? ''))
    const word = (n: number, one: string) => `${n} ${one}${n === 1 ? '' : 's'}`
    return ps.length === 0 ? 'nothing' : `${word(ps.length, 'profile')}, ${word(ms.length, 'machine')}`
  }
  return (
    <Rows
      label="Images"
      rows={images}
      keyOf={(i) => i.name}
      columns={[
        ['Name', (i) => <Link to={`/images/${i.name}`}>{i.name}</Link>],
        ['System', (i) => `${i.os} ${i.release}`],
        ['Architecture', (i) => i.arch],
        [
          'Kind',
          (i) => (
            <Label isCompact color={i.isInstaller ? 'orange' : 'grey'}>
              {kindOf(i)}
            </Label>
          ),
        ],
        ['Reads', (i) => (i.configs ?? []).map((c) => c.format).join(', ') || 'nothing'],
        ['Size', (i) => (artefacts.data ? bytesOf(sizeOf(i, artefacts.data)) : '')],
        ['Used by', (i) => (profiles.data && machines.data ? ofImage(i.name) : '')],
        ['Imported', (i) => <When at={i.updatedAt} />],
      ]}
    />
  )
}
