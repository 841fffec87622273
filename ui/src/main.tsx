import '@patternfly/patternfly/patternfly-base.css'
import './app.css'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { BrowserRouter } from 'react-router'
import { Problem } from './api/client'
import { App } from './shell/App'
import { loadAt } from './shell/places'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000, // events say what has changed
      retry: (n, err) => n < 2 && !(err instanceof Problem && err.status >= 400 && err.status < 500),
    },
  },
})

// Colours as they were chosen last, else as the system wants them.
const theme = localStorage.getItem('slipway-theme')
const isDark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
document.documentElement.classList.toggle('pf-v6-theme-dark', isDark)

// The screen comes with the frame around it, not after it.
void loadAt(location.pathname).finally(() =>
  createRoot(document.getElementById('root') as HTMLElement).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <BrowserRouter>
          <App />
        </BrowserRouter>
      </QueryClientProvider>
    </StrictMode>,
  ),
)
