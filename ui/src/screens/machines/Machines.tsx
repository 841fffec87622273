import { Route, Routes } from 'react-router'
import { MachineList } from './MachineList'
import { MachinePage } from './MachinePage'

export function Machines() {
  return (
    <Routes>
      <Route index element={<MachineList />} />
      <Route path=":name" element={<MachinePage />} />
    </Routes>
  )
}
