import { Modal, ModalBody, ModalHeader } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Tr } from '@patternfly/react-table'
import { places } from './places'

const more: [string, string][] = [
  ['/', 'search everything'],
  ['?', 'these keys'],
  ['Esc', 'close what is open'],
  ['↑ ↓ Home End', 'move in a table'],
  ['Space, Enter', 'select a row, open it'],
]

// Help lists the keys.
export function Help({ close }: { close: () => void }) {
  const rows = [
    ...more,
    ...places.filter((p) => p.key && p.name).map((p): [string, string] => [`g ${p.key}`, `go to ${p.name}`]),
  ]
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="help-title">
      <ModalHeader title="Keys" labelId="help-title" />
      <ModalBody>
        <Table variant="compact" aria-label="Keys" borders={false}>
          <Tbody>
            {rows.map(([key, what]) => (
              <Tr key={key}>
                <Th scope="row">
                  <kbd>{key}</kbd>
                </Th>
                <Td>{what}</Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      </ModalBody>
    </Modal>
  )
}
