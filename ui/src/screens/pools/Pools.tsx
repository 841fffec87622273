import { Route, Routes } from 'react-router'
import { PoolList } from './PoolList'
import { PoolPage } from './PoolPage'

export function Pools() {
  return (
    <Routes>
      <Route index element={<PoolList />} />
      <Route path=":name" element={<PoolPage />} />
    </Routes>
  )
}
