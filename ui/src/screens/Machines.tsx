import { Route, Routes } from 'react-router'
import { MachineList } from './machines/MachineList'
import { MachinePage } from './machines/MachinePage'

export function Machines() {
  return (
    <Routes>
      <Route index element={<MachineList />} />
      <Route path=":name" element={<MachinePage />} />
    </Routes>
  )
}
