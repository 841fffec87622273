import { usePage } from '../api/page'
import { useLater } from './later'

// HostNames offers hosts for what is typed into the field whose list is id. The server looks for them, however many there are.
export function HostNames({ id, typed }: { id: string; typed: string }) {
  const search = useLater(typed.trim(), 200)
  const hosts = usePage('hosts', search ? { search } : {}, 20)
  return (
    <datalist id={id}>
      {(hosts.data?.items ?? []).map((h) => (
        <option key={h.id} value={h.name} />
      ))}
    </datalist>
  )
}
