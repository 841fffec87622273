import { Button, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { headers, problemOf } from '../../api/client'
import { Command } from '../../parts/Command'
import { Loaded } from '../../parts/Failure'

// Sticker shows what can be printed and put on a host: a phone that reads it comes to this page.
export function Sticker({ host, close }: { host: string; close: () => void }) {
  const path = `/hosts/${encodeURIComponent(host)}/sticker.svg?base=${encodeURIComponent(location.origin)}`
  const svg = useQuery({
    queryKey: ['hosts', host, 'sticker'],
    queryFn: async () => {
      const r = await fetch(`/api/v1${path}`, { headers: headers() })
      if (!r.ok) throw await problemOf(r)
      return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await r.text())}`
    },
  })
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="sticker-title" className="host-sticker">
      <ModalHeader title={`Sticker of ${host}`} labelId="sticker-title" />
      <ModalBody>
        <Loaded query={svg}>
          {(src) => <img src={src} alt={`${host} with a QR code of its page`} className="host-sticker-image" />}
        </Loaded>
        <Command
          cli={`slipway host sticker ${host} --base ${location.origin} > ${host}.svg`}
          call={{ method: 'GET', path }}
        />
      </ModalBody>
      <ModalFooter>
        <Button onClick={() => window.print()} isDisabled={!svg.data}>
          Print
        </Button>
        {svg.data && (
          <Button component="a" variant="secondary" href={svg.data} download={`${host}.svg`}>
            Download
          </Button>
        )}
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  )
}
