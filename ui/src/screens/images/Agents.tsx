import { Title } from '@patternfly/react-core'
import { Link } from 'react-router'
import type { Image } from '../../api/client'
import { Command } from '../../parts/Command'
import { When } from '../../parts/When'

// Agents shows the images of our agent, or how to build one.
export function Agents({ images }: { images: Image[] }) {
  return (
    <section aria-label="Agent images" className="image-parts">
      <Title headingLevel="h2" size="lg">
        The agent
      </Title>
      <p>
        Slipway boots its agent on a host to inspect it, wipe it, and write disk images. Build the image of the agent on
        the server, from Debian's kernel package and without a download.
      </p>
      {images.length === 0 ? (
        <p>
          <strong>It is not built yet.</strong> Until then a host can boot installers and live systems only. Build it on
          the server:
        </p>
      ) : (
        <ul>
          {images.map((i) => (
            <li key={i.name}>
              <Link to={`/images/${i.name}`}>{i.name}</Link> ({i.arch}), version {i.version}, built{' '}
              <When at={i.updatedAt} />. Build it again after an update of Slipway or of the kernel package:
            </li>
          ))}
        </ul>
      )}
      <Command cli="sudo apt-get install linux-image-amd64 && sudo slipway agent-image build" />
    </section>
  )
}
