// Tabs of one browser share a login: who comes in or leaves in one does so in all of them. What is said between them is
// only that something has changed; each asks the server what is so.
const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel('slipway-login')

// tell says to the other tabs that somebody has come in or left.
export const tell = () => channel?.postMessage('')

// onTold calls fn when another tab has told so.
export function onTold(fn: () => void): () => void {
  channel?.addEventListener('message', fn)
  return () => channel?.removeEventListener('message', fn)
}

// comesBack is the page where a login ends that was begun in a tab of its own.
export const comesBack = '/logged-in'
