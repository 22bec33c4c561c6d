package org.phonebit.example

import android.Manifest
import android.os.Bundle
import android.os.SystemClock
import android.view.Gravity
import android.widget.FrameLayout
import android.widget.TextView
import androidx.activity.ComponentActivity
import androidx.activity.result.contract.ActivityResultContracts
import androidx.camera.core.CameraSelector
import androidx.camera.core.ImageAnalysis
import androidx.camera.core.ImageProxy
import androidx.camera.core.Preview
import androidx.camera.lifecycle.ProcessCameraProvider
import androidx.camera.view.PreviewView
import androidx.core.content.ContextCompat
import java.util.concurrent.ExecutorService
import java.util.concurrent.Executors
import org.phonebit.Frame
import org.phonebit.Network

/** The back camera's image, and what the network takes it for. */
class MainActivity : ComponentActivity() {
    private lateinit var preview: PreviewView
    private lateinit var text: TextView

    /** Loads the network, runs it and closes it: all in one thread, in this order. */
    private val worker: ExecutorService = Executors.newSingleThreadExecutor()
    private var network: Network? = null

    /** A frame that comes while another one is being classified is dropped. */
    private val analysis = ImageAnalysis.Builder()
        .setBackpressureStrategy(ImageAnalysis.STRATEGY_KEEP_ONLY_LATEST)
        .build()

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        preview = PreviewView(this)
        text = TextView(this).apply {
            textSize = 20f
            setPadding(24, 24, 24, 24)
        }
        val below = FrameLayout.LayoutParams(
            FrameLayout.LayoutParams.MATCH_PARENT, FrameLayout.LayoutParams.WRAP_CONTENT, Gravity.BOTTOM,
        )
        setContentView(FrameLayout(this).apply {
            addView(preview)
            addView(text, below)
        })
        worker.execute(::load)
        registerForActivityResult(ActivityResultContracts.RequestPermission()) { isGranted ->
            if (isGranted) startCamera() else show("no permission for the camera")
        }.launch(Manifest.permission.CAMERA)
    }

    override fun onDestroy() {
        super.onDestroy()
        analysis.clearAnalyzer()
        worker.execute { network?.close() }
        worker.shutdown()
    }

    private fun load() {
        try {
            network = Network.load(this, MODEL)
        } catch (error: Exception) {
            show("$MODEL: ${error.message}")
        }
    }

    private fun startCamera() {
        val future = ProcessCameraProvider.getInstance(this)
        future.addListener({
            val shown = Preview.Builder().build()
            shown.setSurfaceProvider(preview.surfaceProvider)
            analysis.setAnalyzer(worker, ::classify)
            future.get().bindToLifecycle(this, CameraSelector.DEFAULT_BACK_CAMERA, shown, analysis)
        }, ContextCompat.getMainExecutor(this))
    }

    private fun classify(proxy: ImageProxy) = proxy.use {
        val classifier = network ?: return@use
        try {
            val start = SystemClock.elapsedRealtimeNanos()
            val best = classifier.classify(Frame.of(proxy), 1).single()
            val milliseconds = (SystemClock.elapsedRealtimeNanos() - start) / 1e6
            show("%s  %.3f\n%.1f ms on %s".format(best.label, best.score, milliseconds, classifier.device))
        } catch (error: RuntimeException) {
            show(error.message ?: error.toString())
        }
    }

    private fun show(line: String) = runOnUiThread { text.text = line }

    private companion object {
        const val MODEL = "model.pbit"
    }
}
