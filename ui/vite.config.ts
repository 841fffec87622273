import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { licences } from './licences.ts'

// The server compresses and serves dist from inside the binary; nothing is loaded from anywhere else.
export default defineConfig({
  plugins: [react(), ...licences('..')],
  build: { target: 'es2022', sourcemap: false, emptyOutDir: true, chunkSizeWarningLimit: 1500, assetsInlineLimit: 0 },
  server: { proxy: { '/api': process.env.SLIPWAY_URL ?? 'http://127.0.0.1:8080' } },
  // A test that needs a page says so in its first line; a page for each file takes longer than all tests.
  test: { environment: 'node', include: ['src/**/*.test.{ts,tsx}'] },
} as never)
