import { Button, Tab, TabContentBody, Tabs, TabTitleText, Tooltip } from '@patternfly/react-core'
import { useState } from 'react'
import { Link, Route, Routes, useNavigate, useParams, useSearchParams } from 'react-router'
import type { Profile } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList, useOne } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { Addresses } from '../addresses/Addresses'
import { blank, draftOf } from './draft'
import { Layers } from './Layers'
import { FieldDiffs, ProfileEditor } from './ProfileEditor'
import './profiles.css'
import { Rows } from '../../parts/Rows'
import { Hosts } from './Render'
import { Revisions } from './Revisions'

// Profiles are their list, the layers beside them, and a page for each.
export function Profiles() {
  return (
    <Routes>
      <Route index element={<All />} />
      <Route path=":name" element={<OfName />} />
    </Routes>
  )
}

function OfName() {
  const { name = '' } = useParams()
  return <ProfilePage key={name} name={name} />
}

function All() {
  const [params, setParams] = useSearchParams()
  const not = mayNot(useMe(), 'operator', '')
  const go = useNavigate()
  if (params.has('new')) return <NewProfile />
  const add = (
    <Button isAriaDisabled={not !== undefined} onClick={() => not === undefined && void go('/profiles?new=')}>
      Create a profile
    </Button>
  )
  return (
    <Screen
      title="Profiles"
      about="A profile is an image and one configuration in layers."
      actions={not ? <Tooltip content={not}>{add}</Tooltip> : add}
    >
      <Tabs
        activeKey={params.get('tab') ?? 'profiles'}
        onSelect={(_, k) => setParams(k === 'profiles' ? {} : { tab: String(k) })}
        aria-label="Profiles and layers"
        mountOnEnter
        unmountOnExit
      >
        <Tab eventKey="profiles" title={<TabTitleText>Profiles</TabTitleText>}>
          <TabContentBody hasPadding>
            <ProfileTable />
          </TabContentBody>
        </Tab>
        <Tab eventKey="layers" title={<TabTitleText>Layers</TabTitleText>}>
          <TabContentBody hasPadding>
            <Layers />
          </TabContentBody>
        </Tab>
      </Tabs>
    </Screen>
  )
}

function ProfileTable() {
  const profiles = useList('profiles')
  return (
    <Loaded query={profiles}>
      {(all) =>
        all.length === 0 ? (
          <Nothing title="There is no profile yet">
            A profile names an <Link to="/images">image</Link>, selects hosts, and describes their users, files, network
            and disks. An accepted host without a profile waits at a screen with that reason.
          </Nothing>
        ) : (
          <Rows
            label="Profiles"
            rows={all}
            keyOf={(p) => p.name}
            columns={[
              ['Name', (p) => <Link to={`/profiles/${p.name}`}>{p.name}</Link>],
              ['Image', (p) => <Link to={`/images/${p.image}`}>{p.image}</Link>],
              ['Selector', (p) => (p.selector ? <code>{p.selector}</code> : 'by name only')],
              ['Priority', (p) => p.priority ?? 0],
              ['Extends', (p) => p.extends],
              ['Revision', (p) => p.revision],
              ['Changed', (p) => <When at={p.updatedAt} />],
            ]}
          />
        )
      }
    </Loaded>
  )
}

// NewProfile begins with a template, or with a copy of another.
function NewProfile() {
  const [params] = useSearchParams()
  const from = params.get('new') ?? ''
  const copied = useOne('profiles', from)
  const go = useNavigate()
  const done = (p: Profile) => void go(`/profiles/${p.name}`)
  const begin = { ...blank, image: params.get('image') ?? '' }
  return (
    <Screen
      title="Create a profile"
      about={
        from
          ? `A copy of ${from}. It has no selector, so that it selects no hosts.`
          : 'Its text begins with a template; change it.'
      }
      actions={<Link to="/profiles">All profiles</Link>}
    >
      {from ? (
        <Loaded query={copied}>
          {(p) => <ProfileEditor begin={{ ...draftOf(p), selector: '' }} from={from} done={done} />}
        </Loaded>
      ) : (
        <ProfileEditor begin={begin} done={done} />
      )}
    </Screen>
  )
}

function ProfilePage({ name }: { name: string }) {
  const profile = useOne('profiles', name)
  const [params, setParams] = useSearchParams()
  const [asks, setAsks] = useState(false)
  const go = useNavigate()
  const not = mayNot(useMe(), 'operator', '')
  return (
    <Screen
      title={name}
      about={
        profile.data && (
          <>
            Profile of image <Link to={`/images/${profile.data.image}`}>{profile.data.image}</Link>, revision{' '}
            {profile.data.revision}, changed <When at={profile.data.updatedAt} />
          </>
        )
      }
      actions={
        profile.data && (
          <div className="profile-bar">
            <Button variant="secondary" onClick={() => void go(`/profiles?new=${encodeURIComponent(name)}`)}>
              Copy
            </Button>
            <Button variant="secondary" isDanger isDisabled={not !== undefined} onClick={() => setAsks(true)}>
              Delete
            </Button>
            {not && <small>{not}</small>}
          </div>
        )
      }
    >
      <Loaded query={profile}>
        {(p) => (
          <Tabs
            activeKey={params.get('tab') ?? 'edit'}
            onSelect={(_, k) => setParams(k === 'edit' ? {} : { tab: String(k) })}
            aria-label="Parts of the profile"
            mountOnEnter
            unmountOnExit
          >
            <Tab eventKey="edit" title={<TabTitleText>Edit</TabTitleText>}>
              <TabContentBody hasPadding>
                <ProfileEditor stored={p} done={() => undefined} />
              </TabContentBody>
            </Tab>
            <Tab eventKey="hosts" title={<TabTitleText>Hosts</TabTitleText>}>
              <TabContentBody hasPadding>
                <h2>Static addresses of its machines</h2>
                <Addresses of={{ profile: p.name }} none="None: DHCP gives its machines their addresses." />
                <Hosts profile={p} />
              </TabContentBody>
            </Tab>
            <Tab eventKey="revisions" title={<TabTitleText>Revisions</TabTitleText>}>
              <TabContentBody hasPadding>
                <Revisions<Profile>
                  noun="profiles"
                  name={name}
                  version={p.version}
                  cli="slipway profile"
                  compare={(a, b) => (
                    <FieldDiffs before={a ? draftOf(a) : { ...blank, config: '' }} after={draftOf(b)} />
                  )}
                />
              </TabContentBody>
            </Tab>
          </Tabs>
        )}
      </Loaded>
      {asks && (
        <Ask
          title={`Delete profile ${name}?`}
          verb="Delete"
          foresees={dryOf({
            method: 'DELETE',
            path: `/profiles/${encodeURIComponent(name)}`,
            version: profile.data?.version,
          })}
          cli={`slipway profile delete ${name}`}
          call={{ method: 'DELETE', path: `/profiles/${encodeURIComponent(name)}`, version: profile.data?.version }}
          close={() => setAsks(false)}
          done={() => void go('/profiles')}
        />
      )}
    </Screen>
  )
}
