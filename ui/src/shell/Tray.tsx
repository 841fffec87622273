import { Button, Label } from '@patternfly/react-core'
import { AngleDownIcon, AngleUpIcon } from '@patternfly/react-icons'
import { useState } from 'react'
import { Link } from 'react-router'
import { useList } from '../api/queries'
import { OperationTable } from '../screens/operations/OperationTable'

const key = 'slipway-tray'
const shown = 50

// Tray is what is being done now, at the foot of every screen.
export function Tray() {
  const operations = useList('operations', { open: true })
  const [isOpen, setOpen] = useState(() => localStorage.getItem(key) === 'open')
  const all = operations.data ?? []
  const turn = () => {
    localStorage.setItem(key, isOpen ? 'closed' : 'open')
    setOpen(!isOpen)
  }
  const waiting = all.filter((o) => o.state === 'waiting').length
  return (
    <section className="tray" aria-label="Running operations">
      <div className="tray-head">
        <Button
          variant="plain"
          onClick={turn}
          aria-expanded={isOpen}
          aria-label={isOpen ? 'Hide running operations' : 'Show running operations'}
          icon={isOpen ? <AngleDownIcon /> : <AngleUpIcon />}
        />
        <span role="status">
          {operations.data === undefined
            ? 'Operations'
            : all.length === 0
              ? 'No operation is running'
              : `${all.length} ${all.length === 1 ? 'operation' : 'operations'} in progress`}
        </span>
        {waiting > 0 && (
          <Label isCompact color="orange">
            {waiting} waiting
          </Label>
        )}
        <Link to="/operations">All operations</Link>
      </div>
      {isOpen && (
        <div className="tray-body" tabIndex={0} role="group" aria-label="Operations in progress">
          {all.length === 0 && (
            <p className="tray-empty">This list shows running operations on hosts. It is on every page.</p>
          )}
          {all.length > 0 && <OperationTable operations={all.slice(0, shown)} label="Operations in progress" />}
          {all.length > shown && (
            <p>
              <Link to="/operations?open=yes">and {all.length - shown} more</Link>
            </p>
          )}
        </div>
      )}
    </section>
  )
}
